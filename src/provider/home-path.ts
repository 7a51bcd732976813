/** What is wrong with a path that only a shell understands (`~/drains`, `~user/drains`); undefined for any other. */
export function homePath(path: string): string | undefined {
  return /^~[\w.-]*(?:[/\\]|$)/.test(path)
    ? "'~' means nothing outside of a shell; write join(homedir(), ...)"
    : undefined
}
