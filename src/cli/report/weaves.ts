import { markup } from './markup.js'

/** The weaves of the bands: lines that run another way each, so that no colour is needed to tell them apart. */
export const WEAVES = markup`<defs>
<pattern id="weave-draining" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V8" stroke="var(--edge)" stroke-width="1.5"/></pattern>
<pattern id="weave-out" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 5.5H6" stroke="var(--edge)" stroke-width=".6"/></pattern>
<pattern id="weave-unread" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M0 0L7 7M7 0L0 7" stroke="var(--edge)" stroke-width="1" fill="none"/></pattern>
</defs>`
