import type { RollEvent } from 'drainable'
import { page } from '../../../src/cli/report/page.js'
import { TimelineRecorder } from '../../../src/cli/report/timeline.js'
import type { Result, Verb } from '../../../src/cli/result.js'
import { BEGAN } from './events.js'

/** The page of some events. */
export function pageOf(
  events: readonly RollEvent[],
  result?: Result,
  verb: Verb = result?.verb ?? 'drain',
): string {
  const recorder = new TimelineRecorder()
  for (const event of events) recorder.event(event)
  return page(recorder.timeline(), result, { verb, version: '1.2.3', now: BEGAN + 60_000 })
}

/** What a reader sees of it: its text without the markup. */
export function textOf(html: string): string {
  return html
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&lt;/g, '<')
    .replaceAll(/&gt;/g, '>')
    .replaceAll(/&quot;/g, '"')
    .replaceAll(/&#39;/g, "'")
    .replaceAll(/&amp;/g, '&')
    .replaceAll(/\s+/g, ' ')
}

/** The rows of the tables of numbers, cell by cell. */
export function numberRows(html: string): readonly (readonly string[])[] {
  const tables = [...html.matchAll(/<table class="numbers">.*?<\/table>/gs)].map(([text]) => text)
  return tables
    .flatMap((table) => [...table.matchAll(/<tr><td>(.*?)<\/tr>/gs)])
    .map(([, row = '']) => row.split(/<\/td>(?:<td[^>]*>)?/).map((cell) => textOf(cell).trim()))
}
