/** Which of the three generations of the API the fake is, and what sets them apart. */
export interface Generation {
  /** Such as `3.2.13`. */
  readonly version: string
  readonly tree: 'v2' | 'v3'
  /** chi and OpenAPI 3 in place of go-swagger: 3.3.6 and later. */
  readonly chi: boolean
  /** 2.9 and 3.0 answer 500 where later ones answer 404, and repeat a wrong password. */
  readonly early: boolean
}

/** The generation of a version: `2.9`, `3.0`, `3.2`, `3.4`, or a full one such as `3.2.13`. */
export function generationOf(version: string): Generation {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (!/^\d+\.\d+(\.\d+)?$/.test(version) || major < 2 || major > 3) {
    throw new TypeError(`version is '${version}', expected such as '2.9', '3.0', '3.2' or '3.4'`)
  }
  return {
    version: /^\d+\.\d+$/.test(version) ? `${version}.0` : version,
    tree: major === 2 ? 'v2' : 'v3',
    chi: major === 3 && (minor > 3 || (minor === 3 && patch >= 6)),
    early: major === 2 || minor < 1,
  }
}
