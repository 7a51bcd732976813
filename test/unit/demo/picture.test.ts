import { describe, expect, it } from 'vitest'
import { pictureFile } from '../../../scripts/demo/picture.ts'
import { TimelineRecorder } from '../../../src/cli/report/timeline.js'
import { BEGAN, goodDrain, web1 } from '../cli-report/events.js'

const recorder = new TimelineRecorder()
for (const event of goodDrain()) recorder.event(event)
for (const event of goodDrain({ pool: 'web', member: 'web2' })) recorder.event(event)
recorder.mark(BEGAN + 1_500, 'reload <all>')
recorder.mark(BEGAN + 1_600, 'killed', web1)

describe('the picture of the demo', () => {
  const svg = pictureFile(recorder.timeline(), 'a & b')

  it('has a lane for each server, with the events below it', () => {
    for (const text of ['>web/web1<', '>web/web2<', ': killed<']) expect(svg).toContain(text)
  })

  it('has a mark without a server in each lane, with escaped text', () => {
    expect(svg.match(/: reload &lt;all&gt;</g)).toHaveLength(2)
    expect(svg).toContain('<title>a &amp; b</title>')
  })

  it('has no invalid number', () => {
    expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  })

  it('defines every colour and pattern that it uses', () => {
    const named = (pattern: RegExp) => [...svg.matchAll(pattern)].map(([, name]) => name)
    expect(named(/(--[a-z-]+):/g)).toEqual(expect.arrayContaining(named(/var\((--[a-z-]+)\)/g)))
    expect(named(/id="([^"]+)"/g)).toEqual(expect.arrayContaining(named(/url\(#([^)]+)\)/g)))
  })
})
