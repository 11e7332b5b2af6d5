/** One resource as `resources/list` shows it; keys that we don't know are served as they are. */
export interface ResourceDefinition {
  uri: string;
  name: string;
  [key: string]: unknown;
}

/** A resource as the environment serves it: how it is listed, and its content when it is read. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  /** The `contents` entry that `resources/read` answers. */
  read(): Promise<ResourceContent> | ResourceContent;
}

export interface ResourceContent {
  uri: string;
  mimeType?: string;
  text?: string;
  /** Base64. */
  blob?: string;
  [key: string]: unknown;
}
