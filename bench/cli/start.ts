/**
 * What the built command costs beside a Node that does nothing: wall time and CPU of whole processes, for `--help`, and for
 * `status` on the unix socket of a fake HAProxy. The least of several, because a busy machine only adds.
 *
 * One above its budget, a ratio to bare Node, ends it with status 1. The aim is {@link AIM}.
 *
 * `npm run build && npm run bench -- cli/start`
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { haproxyUrl } from '../../test/support/haproxy-url.js'

const ROUNDS = 15
/** Milliseconds of CPU above bare Node. */
const AIM = 60
/** Times of the CPU of bare Node. */
const BUDGET: Readonly<Record<string, number>> = { '--help': 4, status: 8 }
const command = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

if (!existsSync(command)) {
  console.error('there is no build to measure: run "npm run build" first')
  process.exit(2)
}

interface Cost {
  readonly wall: number
  readonly cpu: number
}

/** Milliseconds of one process, until it has ended. The CPU is what the process itself says at its exit. */
function once(args: readonly string[]): Promise<Cost> {
  const begun = performance.now()
  const tell =
    'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();process._rawDebug("cpu="+(user+system))})'
  const child = spawn(process.execPath, ['--import', tell, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    child.on('close', (status) => {
      const cpu = Number(/^cpu=(\d+)$/m.exec(said)?.[1])
      if (status === 0) resolve({ wall: performance.now() - begun, cpu: cpu / 1_000 })
      else reject(new Error(`${args.join(' ')} ended with ${String(status)}: ${said}`))
    })
  })
}

await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
const programs = {
  'bare Node': ['-e', '0'],
  '--help': [command, '--help'],
  status: [command, 'status', haproxyUrl(fake)],
}
const least = new Map<string, Cost>()
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, args] of Object.entries(programs)) {
    const { wall, cpu } = await once(args)
    const before = least.get(name) ?? { wall: Infinity, cpu: Infinity }
    least.set(name, { wall: Math.min(before.wall, wall), cpu: Math.min(before.cpu, cpu) })
  }
}
const bare = least.get('bare Node') ?? { wall: Number.NaN, cpu: Number.NaN }
console.log(`Node ${process.versions.node}, the least of ${ROUNDS}`)
for (const [name, { wall, cpu }] of least) {
  const above = cpu - bare.cpu
  const ratio = cpu / bare.cpu
  const isOver = ratio > (BUDGET[name] ?? Infinity)
  if (isOver) process.exitCode = 1
  console.log(
    `${name.padEnd(10)} ${wall.toFixed(0).padStart(4)} ms, ${cpu.toFixed(0).padStart(4)} ms of CPU, ` +
      `${ratio.toFixed(1)} times bare Node, +${above.toFixed(0)} ms (aim ${AIM})` +
      (isOver ? ': OVER ITS BUDGET' : ''),
  )
}
