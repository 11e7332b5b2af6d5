import type { Application } from "../environment/application.js";
import { SKILLS_EXTENSION } from "../protocol/skill.js";
import type { JsonObject } from "../protocol/tool.js";

/** What the application has something to serve for; `hasSkills`: skills of its own. */
export function capabilitiesOf(application: Application, hasSkills: boolean): JsonObject {
  const { resources, prompts, tools, environment } = application;
  const completes = [...resources.templates, ...prompts].some((each) => each.complete !== undefined);
  const own = {
    ...(tools.length > 0 ? { tools: { listChanged: true } } : {}),
    ...(resources.empty && !hasSkills
      ? {}
      : {
          resources: {
            ...(resources.subscribable ? { subscribe: true } : {}),
            ...(resources.changing ? { listChanged: true } : {}),
          },
        }),
    ...(prompts.length > 0 ? { prompts: {} } : {}),
    ...(completes ? { completions: {} } : {}),
    ...(environment.logs ? { logging: {} } : {}),
    ...(hasSkills ? { extensions: { [SKILLS_EXTENSION]: { directoryRead: true } } } : {}),
  };
  return application.forwarding.capabilities.reduce(merged, own);
}

/** Both sides' capabilities, those that only one has as it says them. */
function merged(one: JsonObject, other: JsonObject): JsonObject {
  const both = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const mine = both[name];
    both[name] = isObject(mine) && isObject(value) ? merged(mine, value) : value;
  }
  return both;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
