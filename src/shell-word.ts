/** Text as one word of a shell's line, for a person to copy: quoted where the shell would read it as anything else. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
