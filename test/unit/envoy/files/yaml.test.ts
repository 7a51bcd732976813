import * as yaml from 'yaml'
import { describe, expect, test } from 'vitest'
import { AssignmentProblem } from '../../../../src/adapters/envoy/codec/assignment.js'
import { formatEdsYaml, parseEdsYaml } from '../../../../src/adapters/envoy/codec/yaml.js'
import { importYaml } from '../../../../src/adapters/envoy/sources/yaml-package.js'

const SETS = `resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: web
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}
    - health_status: DRAINING
      endpoint: {hostname: "yes", address: {socket_address: {address: 10.0.0.2, port_value: 80}}}
`
const FILE = `# written by the deployment
version_info: "1" # of today

${SETS}`

function drained(text: string): string {
  const [set] = parseEdsYaml(yaml, text).assignments
  if (set === undefined) throw new Error('there is one')
  return formatEdsYaml(yaml, text, set.withStatus(new Map([['10.0.0.1:80', 'DRAINING']])))
}

function problemOf(work: () => unknown): string {
  try {
    work()
  } catch (problem) {
    if (problem instanceof AssignmentProblem) return problem.toString()
    throw problem
  }
  return 'no problem'
}

describe('EDS in YAML', () => {
  test('is read as the same messages in JSON', () => {
    const { version, assignments } = parseEdsYaml(yaml, FILE)
    expect(version).toBe('1')
    expect(assignments[0]?.endpoints).toMatchObject([
      { member: '10.0.0.1:80', status: 'UNKNOWN' },
      { member: '10.0.0.2:80', status: 'DRAINING', hostname: 'yes' },
    ])
  })

  test('is written back with what stands around the sets', () => {
    const text = drained(FILE)
    expect(text).toContain('# written by the deployment')
    expect(text).toMatch(/^version_info: "[0-9a-f]{16}" # of today$/m)
    expect(text).toContain('hostname: "yes"')
    expect(parseEdsYaml(yaml, text).assignments[0]?.endpoints).toMatchObject([
      { status: 'DRAINING' },
      { status: 'DRAINING', hostname: 'yes' },
    ])
  })

  test.each([
    ['a comment', SETS.replace('cluster_name: web', 'cluster_name: web # ours')],
    ['a comment', SETS.replace('  endpoints:', '  # all of them\n  endpoints:')],
    ['an anchor', SETS.replace('endpoint: {addr', 'endpoint: &one {addr')],
    ['an anchor', SETS.replace('cluster_name: web', 'cluster_name: &name web')],
  ])('with %s within the sets is not overwritten', (what, text) => {
    expect(parseEdsYaml(yaml, text).assignments).toHaveLength(1)
    expect(problemOf(() => drained(text))).toMatch(
      new RegExp(`near line \\d+: the endpoint sets hold ${what}, which would be lost`),
    )
  })

  test.each([
    ['', 'expected an object with resources'],
    ['- a', 'expected an object with resources, found a list'],
    ['resources: [', 'not YAML'],
    ['a: 1\na: 2', 'not YAML'],
    ['a: !secret x', 'not YAML'],
    ['a: *nobody', 'not YAML'],
    [`${SETS}---\n${SETS}`, 'expected one YAML document, found 2'],
    [SETS.replace('DRAINING', 'DRAINNG'), 'not a health status'],
  ])('as %j is refused', (text, words) => {
    expect(problemOf(() => parseEdsYaml(yaml, text))).toContain(words)
  })
})

test('a missing YAML package is reported with how to install it', async () => {
  const missing = () => Promise.reject(new Error("Cannot find package 'yaml'"))
  await expect(importYaml('/etc/envoy/web.yaml', missing)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('npm install yaml@2') as string,
  })
})
