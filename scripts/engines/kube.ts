/** A Kubernetes control plane without kubelet or scheduler, in one program, from Go modules alone. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.ts'

const minor = '37.0'
/** What the program says it is. */
export const kubeVersion = `1.${minor}`
const kubernetes = `v${kubeVersion}`
const staging = `v0.${minor}`
const etcd = 'v3.7.0'

/** Builds it into the folder: about four minutes on two idle cores the first time, seconds with Go's caches warm. */
export async function buildControlPlane(directory: string): Promise<string> {
  const sources = fileURLToPath(new URL('./kube/', import.meta.url))
  copyFileSync(join(sources, 'main.go'), join(directory, 'main.go'))
  const env = { CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off', GOMAXPROCS: '2' }
  // Slow is no failure on a busy machine: -x and -v let each step say what it does, and only one that
  // has said nothing for long is given up.
  const go = (...args: string[]) =>
    run('go', args, { cwd: directory, env, timeout: 7_200_000, silence: 1_200_000 })

  writeFileSync(join(directory, 'go.mod'), 'module drainable.test/controlplane\n\ngo 1.26.0\n')
  const answer = await go('mod', 'download', '-x', '-json', `k8s.io/kubernetes@${kubernetes}`)
  const { GoMod: upstream } = JSON.parse(answer) as { GoMod: string }
  writeFileSync(join(directory, 'go.mod'), moduleFile(readFileSync(upstream, 'utf8')))
  await go('mod', 'tidy', '-v', '-e')
  const stamp = `-s -w -X k8s.io/component-base/version.gitVersion=${kubernetes}`
  await go('build', '-v', '-p', '2', '-ldflags', stamp, '-o', 'controlplane', '.')
  return join(directory, 'controlplane')
}

/**
 * Kubernetes is one repository with its libraries in a staging folder, each of them also published as a module.
 * Its own module file replaces them by that folder; ours replaces the same ones by what was published.
 */
function moduleFile(upstream: string): string {
  const staged = [...upstream.matchAll(/^\t(k8s\.io\/[a-z-]+) => \.\/staging/gm)].map(
    (m) => m[1] ?? '',
  )
  return `module drainable.test/controlplane

go 1.26.0

godebug default=go1.26

require (
${[
  `\tk8s.io/kubernetes ${kubernetes}`,
  `\tk8s.io/client-go ${staging}`,
  `\tk8s.io/component-base ${staging}`,
  `\tgo.etcd.io/etcd/server/v3 ${etcd}`,
].join('\n')}
)

replace (
${staged.map((name) => `\t${name} => ${name} ${staging}`).join('\n')}
)
`
}
