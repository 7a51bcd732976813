/** The lanes: their colours come from variables, and each phase has a weave of its own, for paper without colour. */
export const LANE_STYLE = `
.lane, .strip { display: block; overflow: visible }
.lane text, .strip text { font: 12px system-ui, sans-serif; fill: var(--ink) }
.plot { fill: var(--plot) }
.area { fill: var(--line); opacity: .16 }
.active, .bound, .old, .queued { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke }
.active { stroke: var(--line) }
.bound { stroke: var(--line); stroke-width: 1; stroke-dasharray: 1 3 }
.queued { stroke: var(--queued); stroke-dasharray: 6 3 }
.old { stroke: var(--old); stroke-dasharray: 3 5; stroke-width: 3 }
.unread { fill: url(#weave-unread) }
.lane .scale, .lane .tick, .strip .tick { fill: var(--soft) }
.lane .scale { paint-order: stroke; stroke: var(--plot); stroke-width: 3px }
.mark { stroke: var(--ink); stroke-width: 1; opacity: .55 }
.chip rect { fill: var(--ink) }
.lane .chip text { fill: var(--page); text-anchor: middle; font-weight: 600; font-size: 11px }
.band rect { fill: var(--band); stroke: var(--edge) }
.band .weave { fill: none; stroke: none }
.band text { paint-order: stroke; stroke: var(--band-now, var(--band)); stroke-width: 4px; stroke-linejoin: round }
.phase-draining { --band-now: var(--draining) }
.phase-idle { --band-now: var(--idle) }
.phase-removed { --band-now: var(--removed) }
.command-COMMAND { --band-now: var(--command) }
.phase-draining rect, .phase-idle rect, .phase-removed rect, .command-COMMAND rect { fill: var(--band-now) }
.phase-draining .weave { fill: url(#weave-draining) }
.phase-removed .weave { fill: url(#weave-unread) }
.state-drain .weave, .state-maint .weave { fill: url(#weave-out) }
`

/** Colours by day: those of a picture that stands alone, and of paper. */
export const DAY = `
--page: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de; --plot: #f6f8fa; --edge: #8c959f;
--line: #0b5cad; --queued: #8a5a00; --old: #7b3fa0; --band: #ffffff; --draining: #fbe7bd; --idle: #c9ead0;
--removed: #dde1e6; --command: #d6e4f7; --good: #116329; --warn: #7d4e00; --bad: #a40e26`

const NIGHT = `
--page: #14171b; --ink: #e8ebef; --soft: #a9b2bc; --rule: #3a424c; --plot: #1b2027; --edge: #6b7683;
--line: #6cb0f5; --queued: #e0b050; --old: #c99be8; --band: #14171b; --draining: #57430f; --idle: #1c5230;
--removed: #3a424c; --command: #1e3d63; --good: #6fd08c; --warn: #e6b450; --bad: #ff8a80`

/** The page. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; ${DAY} }
@media screen and (prefers-color-scheme: dark) { :root { ${NIGHT} } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem }
h2 { font-size: 1.25rem; margin: 2.25rem 0 .5rem; border-bottom: 1px solid var(--rule); padding-bottom: .25rem }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem }
p { margin: .4rem 0 }
.good { color: var(--good) } .warn { color: var(--warn) } .bad { color: var(--bad) }
.headline { font-size: 1.15rem; font-weight: 600 }
.soft { color: var(--soft) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0 }
dt { color: var(--soft) } dd { margin: 0 }
ol.marks { margin: .5rem 0 0; padding: 0; list-style: none; font-size: .9rem }
ol.marks li { display: grid; grid-template-columns: 2rem 5.5rem 1fr; gap: .5rem; padding: .1rem 0 }
ol.marks b { text-align: center; background: var(--ink); color: var(--page); border-radius: 3px; font-size: .75rem;
  align-self: start; margin-top: .2rem; line-height: 1.3 }
time, td.number, ol.marks li > span { font-variant-numeric: tabular-nums }
ul.why { margin: .3rem 0; padding-left: 1.2rem }
.key { display: flex; flex-wrap: wrap; gap: .35rem 1.25rem; padding: 0; margin: .5rem 0; list-style: none; font-size: .875rem }
.key li { display: flex; align-items: center; gap: .4rem }
.row { display: grid; grid-template-columns: minmax(7rem, 14rem) 1fr; gap: .25rem 1rem; align-items: start; margin: .35rem 0 }
.row span { font-size: .9rem }
.wide { overflow-x: auto; max-width: 100% }
.wide:focus-visible { outline: 2px solid var(--line); outline-offset: 2px }
table { border-collapse: collapse; width: 100%; font-size: .85rem }
caption { text-align: left; font-weight: 600; padding: .25rem 0 }
th, td { text-align: left; padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: normal }
th { color: var(--soft); font-weight: 600 }
th.number, td.number { text-align: right; white-space: nowrap }
td.good, td.warn, td.bad { white-space: nowrap }
td.words { min-width: 22rem; overflow-wrap: anywhere }
${LANE_STYLE}
.lane { margin-top: .5rem }
@media (max-width: 40rem) {
  .row { grid-template-columns: 1fr }
  ol.marks li { grid-template-columns: 2rem 4.5rem 1fr }
  td.words { min-width: 30rem }
}
@media print {
  @page { margin: 14mm }
  body { font-size: 10pt; max-width: none; padding: 0 }
  svg, tr, .row, li { break-inside: avoid }
  h2, h3, caption, section > p { break-after: avoid }
  .wide { overflow: visible }
  table { font-size: 8pt }
  td.words { min-width: 0 }
  svg, ol.marks b { print-color-adjust: exact; -webkit-print-color-adjust: exact }
}
`
