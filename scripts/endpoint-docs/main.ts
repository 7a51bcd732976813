/**
 * Writes docs/endpoint-conditions.md: `node --import ./scripts/source.mjs scripts/endpoint-docs/main.ts`.
 *
 * A test (test/unit/endpoints/docs.test.ts) fails when the page is not what this would write.
 */
import { writeFileSync } from 'node:fs'
import { endpointConditionsPage } from './page.ts'

writeFileSync(
  new URL('../../docs/endpoint-conditions.md', import.meta.url),
  endpointConditionsPage(),
)
