/** The control plane of `examples/envoy-control-plane`, built from Go modules alone. */
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.ts'

const MODULE = `module drainable.test/controlplane

go 1.22

require (
	github.com/envoyproxy/go-control-plane v0.13.4
	github.com/envoyproxy/go-control-plane/envoy v1.32.4
	google.golang.org/grpc v1.70.0
)
`

/** Builds it into the folder: about half a minute on two cores the first time, seconds with Go's caches warm. */
export async function buildGoControlPlane(directory: string): Promise<string> {
  const source = new URL('../../examples/envoy-control-plane/main.go', import.meta.url)
  copyFileSync(fileURLToPath(source), join(directory, 'main.go'))
  writeFileSync(join(directory, 'go.mod'), MODULE)
  const env = { CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off', GOMAXPROCS: '2' }
  const args = ['build', '-v', '-p', '2', '-ldflags', '-s -w', '-o', 'control-plane', '.']
  await run('go', args, { cwd: directory, env, timeout: 3_600_000, silence: 1_200_000 })
  return join(directory, 'control-plane')
}
