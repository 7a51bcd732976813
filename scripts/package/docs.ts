/**
 * `npm run docs`: docs/codes.md, and the site in `docs/api`. A public name without a word about it is an error, and so is a link
 * that leads nowhere, or a guide without its heading.
 */
import { writeCodes } from './codes.ts'
import { root } from './entries.ts'
import { buildSite } from './site.ts'

writeCodes()
process.exitCode = buildSite(`${root}docs/api`, process.argv.slice(2))
