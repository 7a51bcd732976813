import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { startEnvoy, workDir } from '../../../test/support/envoy/proxy.js'
import { figures } from './figures.js'

/** Builds the Go program beside this file and lets it do the same; returns its figures in words. */
export async function benchGo(
  envoyPath: string,
  size: number,
  rounds: number,
  port: number,
  cluster: Readonly<Record<string, unknown>>,
): Promise<string> {
  await using dir = await workDir()
  cpSync(fileURLToPath(new URL('go', import.meta.url)), dir.path, { recursive: true })
  const build = spawnSync(
    'sh',
    ['-c', 'mv go.mod.txt go.mod && mv main.go.txt main.go && go mod tidy && go build -o bench .'],
    {
      cwd: dir.path,
      encoding: 'utf8',
      timeout: 400_000,
    },
  )
  if (build.status !== 0) return `not built (${build.stderr.trim().split('\n').at(-1) ?? 'no Go'})`
  const child = spawn(`${dir.path}/bench`, [String(size), String(rounds), String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const first = await lines.next()
    const grpc = Number(first.value)
    await using stack = new AsyncDisposableStack()
    stack.use(await startEnvoy({ path: envoyPath, eds: { grpc, ads: true }, cluster }))
    const second = await lines.next()
    const result = JSON.parse(String(second.value)) as { encode: number[]; acked: number[] }
    return `snapshot set ${figures(result.encode)}; push to acknowledgement ${figures(result.acked)}`
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}
