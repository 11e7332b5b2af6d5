/** The oldest Node that runs this package, as its package.json says too. */
export const OLDEST_NODE = "22.19";

/** Whether a Node of this version, such as `v24.1.0`, runs this package. */
export function isCurrentNode(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split(".").map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
