/** Manifests of the examples, put into a real API server, and the tokens of the accounts in them. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import type { ControlPlane, KubeObject } from '../../../scripts/endpoint-timelines/control-plane.ts'

const root = fileURLToPath(new URL('../../../examples/kubernetes/', import.meta.url))

const PLURALS: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  ServiceAccount: 'serviceaccounts',
  Role: 'roles',
  RoleBinding: 'rolebindings',
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  Deployment: 'deployments',
}

export function manifest(name: string): readonly KubeObject[] {
  const documents = parseAllDocuments(readFileSync(`${root}${name}`, 'utf8'))
  return documents.map((one) => one.toJS() as KubeObject)
}

/** Creates every object of a manifest; the API server refuses what is wrong in it. */
export async function apply(plane: ControlPlane, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object
    const plural = PLURALS[kind]
    if (plural === undefined) throw new Error(`where does a ${kind} go?`)
    const base = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const { namespace } = metadata as { readonly namespace?: string }
    const scope = namespace === undefined ? '' : `/namespaces/${namespace}`
    await plane.call('POST', `${base}${scope}/${plural}`, object)
  }
}

/** A token of a ServiceAccount, as a pod would get it. */
export async function tokenOf(
  plane: ControlPlane,
  namespace: string,
  name: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
  const { status } = await plane.call('POST', path, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name },
    spec: { expirationSeconds: 3_600 },
  })
  return (status as { readonly token: string }).token
}

/** Every right that a manifest gives, as `verb group/resource`. */
export function rightsIn(objects: readonly KubeObject[]): ReadonlySet<string> {
  const rules = objects.flatMap(({ rules = [] }) => rules as readonly Rule[])
  return new Set(
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
      ),
    ),
  )
}

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}
