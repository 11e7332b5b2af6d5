import type { Completer } from "../environment/resource.js";
import { invalid, ONE_PAGE } from "./rpc-error.js";
import type { McpSession, Params } from "./session.js";
import { forward, joinedList, malformed } from "./session-forward.js";

/** Source: Model Context Protocol 2025-11-25, "Completion". */
const MAX_COMPLETIONS = 100;

/** Serves an environment's prompts to a session, and proposals for the arguments of prompts and templates. */
export function servePrompts(session: McpSession): void {
  const { prompts, resources, forwarding } = session.application;
  const byName = new Map(prompts.map((prompt) => [prompt.definition.name, prompt]));

  if (prompts.length > 0 || forwarding.serversWith("prompts").length > 0) {
    session.handle("prompts/list", (request) => {
      if (request.params.cursor !== undefined) return malformed(session, request, ONE_PAGE);
      const own = prompts.map((prompt) => prompt.definition);
      return joinedList(session, "prompts", request, own);
    });

    session.handle("prompts/get", async (request) => {
      const { name, arguments: args = {} } = request.params;
      const prompt = typeof name === "string" ? byName.get(name) : undefined;
      const behind = prompt === undefined ? forwarding.serverOf("prompts", String(name)) : undefined;
      if (behind !== undefined) return forward(session, behind, request);
      if (prompt === undefined) throw invalid(`Unknown prompt: ${String(name)}`);
      if (!isStrings(args)) throw invalid("params.arguments is an object of strings");
      return prompt.get(args, session.contextOf(request));
    });
  }

  const byTemplate = new Map(resources.templates.map((template) => [template.definition.uriTemplate, template]));
  const own = [...byName.values(), ...byTemplate.values()].some((each) => each.complete !== undefined);
  if (!own && forwarding.serversWith("completions").length === 0) return;
  session.handle("completion/complete", async (request) => {
    const { ref, argument, context } = request.params as { ref?: Params; argument?: Params; context?: Params };
    const target = ref?.type === "ref/prompt" ? byName.get(String(ref.name)) : byTemplate.get(String(ref?.uri));
    const behind =
      target !== undefined
        ? undefined
        : ref?.type === "ref/prompt"
          ? forwarding.serverOf("prompts", String(ref.name))
          : forwarding.serverOf("resourceTemplates", String(ref?.uri));
    if (behind !== undefined) return forward(session, behind, request);
    if (target === undefined) throw invalid("params.ref names no prompt or resource template", { ref });
    const { name, value } = argument ?? {};
    if (typeof name !== "string" || typeof value !== "string") throw invalid("params.argument is {name, value}");
    const given = isStrings(context?.arguments) ? context.arguments : {};
    return { completion: await complete(target.complete?.[name], value, given) };
  });
}

async function complete(
  completer: Completer | undefined,
  value: string,
  given: Record<string, string>,
): Promise<object> {
  const values = (await completer?.(value, given)) ?? [];
  return { values: values.slice(0, MAX_COMPLETIONS), total: values.length, hasMore: values.length > MAX_COMPLETIONS };
}

function isStrings(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string");
}
