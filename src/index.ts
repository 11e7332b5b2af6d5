/**
 * The public surface of agent-env. What isn't exported here may change in any version.
 *
 * @packageDocumentation
 */
import "./current-node.js";
import { provideServer } from "./environment/serving.js";
import { buildApp, serve } from "./http/serve.js";

provideServer({ app: buildApp, serve });

export { EnvironmentClient, type EnvironmentClientOptions, findExtension } from "./client/environment-client.js";
export type { JsonAnswer, RequestOptions } from "./client/json-request.js";
export { RemoteError, type RemoteErrorFields } from "./client/remote-error.js";
export { ComputerDriver, type DriverOptions } from "./computer/driver.js";
export type { InputTurn } from "./computer/input-queue.js";
export { PRINTABLE_KEYS, type SupportedKeys } from "./computer/keys.js";
export type { ComputerLog } from "./computer/log.js";
export type {
  Capture,
  Delivered,
  Delivery,
  Groups,
  HeldKeys,
  KeyboardGroup,
  PlannedInput,
  PointerGroup,
  SetsDisplay,
} from "./computer/operations.js";
export type { SupportedPlatform } from "./computer/platform.js";
export type { ComputerSession, RunningService, ServiceSpec, SessionUser } from "./computer/session.js";
export type { ComputerSettings } from "./computer/settings.js";
export type { KnownFault, PackFile } from "./computer/skill.js";
export { errorResult } from "./environment/application.js";
export { CALLER_ENDS, Caller, type CallerEnd } from "./environment/caller.js";
export type { ClientPeer, ClientSession, RequestKey, TextAnswer } from "./environment/client-peer.js";
export { audio, embeddedResource, image, resourceLink, text } from "./environment/content.js";
export type { CallContext, Elicited, SampleRequest, SampleResult, ToolContext } from "./environment/context.js";
export {
  addData,
  agentSkill,
  type DecoratedMethod,
  extension,
  getData,
  prompt,
  type ResourceAnswer,
  resetData,
  resource,
  serverInstructions,
  type ToolOptions,
  tool,
} from "./environment/decorators.js";
export { defineTool, type HandlerResult, type ToolSpec } from "./environment/define-tool.js";
export { Environment, type Mounted, type Readiness } from "./environment/environment.js";
export {
  type ExtensionContext,
  type ExtensionMethod,
  extensionMethod,
  type ServedExtension,
} from "./environment/extension.js";
export type {
  ForwardedCall,
  ForwardedCatalog,
  ForwardedChange,
  ForwardedItem,
  ForwardedList,
  ForwardedServer,
  ListKind,
} from "./environment/forwarded-server.js";
export type { ExtensionOptions, Listed, PromptOptions, ResourceOptions } from "./environment/metadata.js";
export { type PartBytesOptions, partBytes } from "./environment/part-bytes.js";
export type { PromptAnswer, ServedPrompt } from "./environment/prompt.js";
export type {
  Completer,
  ResourceContent,
  ResourceContext,
  ResourceDefinition,
  ServedResource,
  ServedTemplate,
  TemplateDefinition,
} from "./environment/resource.js";
export { ForwardedTool, type ServedTool } from "./environment/served-tool.js";
export type { AppOptions, ServeOptions, Serving } from "./environment/serving.js";
export type { SkillAnswer } from "./environment/skill.js";
export { GrantedUpload, ReadGrant, WriteGrant } from "./environment/transfers.js";
export { UriTemplate } from "./environment/uri-template.js";
export {
  AgentEnvError,
  type Applied,
  ERRORS,
  type ErrorCode,
  type ErrorFields,
  type ErrorOptions,
  SetupError,
} from "./errors.js";
export { Gateway, type GatewayChild } from "./http/gateway.js";
export { McpClient, type McpClientOptions } from "./mcp/client.js";
export { type ForwardMcpOptions, forwardMcp } from "./mcp/forward/forward-mcp.js";
export { Card, type CardExtension, type CardTool, DATA_OPERATIONS, type DataOperation } from "./protocol/card.js";
export {
  BUTTONS,
  type Button,
  type Display,
  type Effect,
  type ReadyCheck,
  type ReadyStatus,
  type ScreenPoint,
  type ScrollDirection,
} from "./protocol/computer.js";
export {
  DATA_OBJECTS_URN,
  type DataPart,
  type FilePart,
  type GetDataParams,
  INTAKE_URN,
  type IntakeFormat,
  type Part,
  type TextPart,
} from "./protocol/data-plane.js";
export {
  LOG_LEVELS,
  type LogLevel,
  type PromptArgument,
  type PromptDefinition,
  type PromptMessage,
  type PromptResult,
} from "./protocol/prompt.js";
export { type JsonParts, RawError, RawJson } from "./protocol/raw-json.js";
export type { SkillGetResult } from "./protocol/skill.js";
export type {
  CallToolResult,
  ContentBlock,
  ImageContent,
  JsonObject,
  TextContent,
  ToolAnnotations,
  ToolDefinition,
  ToolResult,
} from "./protocol/tool.js";
