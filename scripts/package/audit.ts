/** What `npm audit --json` says of packages that are bundled. */
import type { Component } from './bom.ts'

/** The part of npm's answer that is read (npm 10 and 11, `auditReportVersion` 2). */
export interface Audit {
  readonly message?: string
  readonly vulnerabilities?: Readonly<Record<string, Vulnerability>>
}

interface Vulnerability {
  readonly name: string
  readonly severity: string
  /** A text names another package of the list that this one is vulnerable by. */
  readonly via: readonly (string | Advisory)[]
  /** Folders of the packages that are meant. */
  readonly nodes: readonly string[]
}

interface Advisory {
  readonly title: string
  readonly url: string
  readonly range: string
}

/**
 * The advisories of what is bundled, a line each. One that a package only has by another that it uses is not its own: if
 * that one is bundled too, it is in the list by itself.
 */
export function found(
  vulnerabilities: Readonly<Record<string, Vulnerability>>,
  bundled: readonly Component[],
): readonly string[] {
  return bundled.flatMap((component) => {
    const name =
      component.group === undefined ? component.name : `${component.group}/${component.name}`
    const known = vulnerabilities[name]
    if (known === undefined || !pathsOf(component).some((path) => known.nodes.includes(path)))
      return []
    return known.via.flatMap((via) =>
      typeof via === 'string'
        ? []
        : [
            `${name} ${component.version ?? ''}, ${known.severity}: ${via.title} (${via.range}), ${via.url}`,
          ],
    )
  })
}

/** The folders that it was bundled from. */
function pathsOf({ properties }: Component): readonly string[] {
  return properties.filter(({ name }) => name === 'cdx:npm:package:path').map(({ value }) => value)
}
