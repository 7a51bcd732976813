import { readFileSync } from 'node:fs'

declare const DRAINABLE_VERSION: string | undefined

/** The package's version: the build puts it in, the sources read it. */
export const version: string =
  typeof DRAINABLE_VERSION === 'string' ? DRAINABLE_VERSION : fromManifest()

function fromManifest(): string {
  const url = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { readonly version: string }).version
}
