// Generates the protobuf code of the Envoy gRPC entry into the git-ignored folder
// src/adapters/envoy/grpc/gen. The .proto files come inside the npm package @grpc/grpc-js-xds, which
// carries Envoy's API with everything it imports; buf and protoc-gen-es turn them into TypeScript.
// Only TYPES and what they are made of are generated. It does nothing while its inputs are the same.
//
//   node scripts/proto.mjs [--force]
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const SELF = fileURLToPath(import.meta.url)
const ROOT = resolve(dirname(SELF), '..')
const OUT = join(ROOT, 'src/adapters/envoy/grpc/gen')
const ENTRIES = [
  'envoy/config/endpoint/v3/endpoint.proto',
  'envoy/service/discovery/v3/discovery.proto',
  'envoy/service/load_stats/v3/lrs.proto',
]
const TYPES = [
  'envoy.config.endpoint.v3.ClusterLoadAssignment',
  'envoy.service.discovery.v3.DiscoveryRequest',
  'envoy.service.discovery.v3.DiscoveryResponse',
  'envoy.service.discovery.v3.DeltaDiscoveryRequest',
  'envoy.service.discovery.v3.DeltaDiscoveryResponse',
  'envoy.service.load_stats.v3.LoadStatsRequest',
  'envoy.service.load_stats.v3.LoadStatsResponse',
]
/** Notes for other generators: they say nothing about the bytes. */
const ANNOTATIONS = [
  'validate.**',
  'udpa.annotations.**',
  'xds.annotations.v3.**',
  'envoy.annotations.**',
]
const NEEDED = ['@grpc/grpc-js-xds', '@bufbuild/buf', '@bufbuild/protoc-gen-es']

const stamp = JSON.stringify({
  script: createHash('sha256').update(readFileSync(SELF)).digest('hex').slice(0, 16),
  ...Object.fromEntries(NEEDED.map((name) => [name, manifest(name).version])),
})
const stampFile = join(OUT, 'stamp.json')
const fresh = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp
if (!fresh || process.argv.includes('--force')) generate()

function generate() {
  const started = Date.now()
  // Beside the result, so that the last step is one rename whoever else runs this at the same time.
  const work = `${OUT}.${process.pid}.tmp`
  mkdirSync(work, { recursive: true })
  try {
    const deps = join(packageRoot('@grpc/grpc-js-xds'), 'deps')
    for (const file of closure(ENTRIES, deps)) {
      mkdirSync(dirname(join(work, 'proto', file.name)), { recursive: true })
      cpSync(file.path, join(work, 'proto', file.name))
    }
    const template = {
      version: 'v2',
      plugins: [
        {
          local: [
            process.execPath,
            join(packageRoot('@bufbuild/protoc-gen-es'), 'bin/protoc-gen-es'),
          ],
          out: 'gen',
          opt: ['target=js+dts', 'import_extension=js'],
          include_imports: true,
        },
      ],
    }
    writeFileSync(
      join(work, 'buf.yaml'),
      JSON.stringify({ version: 'v2', modules: [{ path: 'proto' }] }),
    )
    writeFileSync(join(work, 'buf.gen.yaml'), JSON.stringify(template))
    const buf = join(packageRoot('@bufbuild/buf'), 'bin/buf')
    const args = [
      buf,
      'generate',
      '--timeout',
      '120s',
      ...TYPES.flatMap((type) => ['--type', type]),
      ...ANNOTATIONS.flatMap((type) => ['--exclude-type', type]),
    ]
    const run = spawnSync(process.execPath, args, {
      cwd: work,
      encoding: 'utf8',
      env: { ...process.env, BUF_CACHE_DIR: join(work, 'cache') },
    })
    if (run.status !== 0) {
      throw new Error(
        `buf generate ended with status ${run.status}:\n${run.stderr.slice(0, 2_000)}`,
        {
          cause: run.error,
        },
      )
    }
    writeFileSync(join(work, 'gen/stamp.json'), stamp)
    rmSync(OUT, { recursive: true, force: true })
    renameSync(join(work, 'gen'), OUT)
    process.stderr.write(`protobuf code generated in ${Date.now() - started} ms\n`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The entry files and everything they import, wherever it lies; google/protobuf/ comes with buf. */
function closure(entries, deps) {
  const roots = ['envoy-api', 'googleapis', 'protoc-gen-validate', 'xds'].map((d) => join(deps, d))
  const found = new Map()
  const queue = [...entries]
  for (const name of queue) {
    if (found.has(name) || name.startsWith('google/protobuf/')) continue
    const path = roots.map((root) => join(root, name)).find((file) => existsSync(file))
    if (path === undefined) throw new Error(`${name} is not among the files of @grpc/grpc-js-xds`)
    found.set(name, { name, path })
    const imports = readFileSync(path, 'utf8').matchAll(/^import (?:public )?"([^"]+)";/gm)
    for (const [, imported] of imports) queue.push(imported)
  }
  return [...found.values()]
}

function packageRoot(name) {
  return join(ROOT, 'node_modules', name)
}

function manifest(name) {
  const file = join(packageRoot(name), 'package.json')
  if (!existsSync(file)) throw new Error(`${name} is not installed, run npm ci first`)
  return JSON.parse(readFileSync(file, 'utf8'))
}
