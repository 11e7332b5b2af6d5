import type { Mounted } from "../../environment/environment.js";
import { extensionMethod, type ServedExtension } from "../../environment/extension.js";
import { AgentEnvError } from "../../errors.js";
import { NoParams, SetSpacesRequest, SPACES_URN, Space, type SpacesAnswer } from "../../protocol/computer.js";
import { pointToolTexts } from "../card.js";
import type { Computer } from "../computer.js";
import { pointSpace } from "../spaces.js";

/** computer-spaces/v1: the default coordinate space, which the descriptions of the point tools name. */
export function spacesExtension(computer: Computer, application: () => Mounted | undefined): ServedExtension {
  return {
    uri: SPACES_URN,
    description:
      "Tells and changes the space that points are in where a call names none; the tools' descriptions say it.",
    params: () => ({ spaces: Space.options }),
    methods: [
      extensionMethod({
        name: "get",
        op: "get",
        method: "GET",
        request: NoParams,
        handle: () => current(computer),
      }),
      extensionMethod({
        name: "set",
        op: "set",
        method: "POST",
        request: SetSpacesRequest,
        handle: (params) => {
          const named = Space.safeParse(params.default_space);
          if (!named.success) {
            throw new AgentEnvError("invalid_argument", `default_space is one of ${Space.options.join(", ")}`);
          }
          const { space, normScale } = pointSpace(named.data, params.default_norm_scale ?? null, computer.usualSpace);
          computer.settings = { ...computer.settings, default_space: space, default_norm_scale: normScale };
          const mounted = application();
          if (mounted !== undefined) describeTools(computer, mounted);
          return current(computer);
        },
      }),
    ],
  };
}

function current({ settings }: Computer): SpacesAnswer {
  return { default_space: settings.default_space, default_norm_scale: settings.default_norm_scale };
}

function describeTools(computer: Computer, application: Mounted): void {
  const served = new Set(application.tools.map((tool) => tool.definition.name));
  application.updateTools(new Map([...pointToolTexts(computer)].filter(([name]) => served.has(name))));
}
