/**
 * `npm run advisories`: asks npm for advisories of the versions that are bundled (`sbom.cdx.json`). `npm audit` in a user's
 * project can't see them, as they are not installed there.
 *
 * Status 1 names each advisory. Status 2: nobody could be asked, or there is no build; `--offline-is-fine` makes the first
 * of the two a warning.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { found, type Audit } from './audit.ts'
import { bomPath, type Component } from './bom.ts'
import { root } from './entries.ts'

if (!existsSync(`${root}${bomPath}`)) {
  console.error(`there is no ${bomPath}: run "npm run build" first`)
  process.exit(2)
}
const { components } = JSON.parse(readFileSync(`${root}${bomPath}`, 'utf8')) as {
  readonly components: readonly Component[]
}
const { stdout } = spawnSync('npm', ['audit', '--json', '--package-lock-only'], {
  cwd: root,
  encoding: 'utf8',
  timeout: 120_000,
})
const audit = JSON.parse(stdout === '' ? '{}' : stdout) as Audit
const bundled = components.filter(({ version }) => version !== undefined)
if (audit.vulnerabilities === undefined) {
  console.error(`the registry could not be asked for advisories: ${audit.message ?? 'no answer'}`)
  process.exitCode = process.argv.includes('--offline-is-fine') ? 0 : 2
} else {
  const all = found(audit.vulnerabilities, bundled)
  for (const line of all) console.error(line)
  console.log(`${bundled.length} bundled packages, ${all.length} advisories`)
  process.exitCode = all.length > 0 ? 1 : 0
}
