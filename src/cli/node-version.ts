/** The oldest Node that the package runs on, as `engines` in package.json has it. */
const OLDEST = [22, 19] as const

/** What to say on a Node that is too old; undefined if it is not. */
export function tooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined
  return `drainable: this is Node.js ${version}, and it needs ${OLDEST.join('.')} or newer`
}
