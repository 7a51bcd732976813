/** The version of a product, as numbers. */
export interface Version {
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** As the product writes it, such as `2.6.12-1+deb12u4`. */
  readonly text: string
}

/** Longer than any version together with the path around it. */
const LONGEST = 200

/**
 * Finds the version in a text: `15.1.10`, `2.6.12-1+deb12u4`, `v3.2.13 a1b2c3`, `<sha>/1.40.0-dev/Clean/RELEASE`. It
 * must begin the text or a part of it between slashes; a `v` before it is allowed, and missing numbers are 0.
 *
 * @returns undefined if the text has none
 */
export function parseVersion(text: string): Version | undefined {
  const match = /(?:^|\/|\s)v?((\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?[^\s/]*)/.exec(
    text.slice(0, LONGEST),
  )
  if (match === null) return undefined
  const [, whole = '', major, minor, patch = '0'] = match
  return { major: Number(major), minor: Number(minor), patch: Number(patch), text: whole }
}

/** Whether a version is at least this one. */
export function isAtLeast(version: Version, major: number, minor: number, patch = 0): boolean {
  const parts = [version.major - major, version.minor - minor, version.patch - patch]
  return (parts.find((part) => part !== 0) ?? 0) >= 0
}
