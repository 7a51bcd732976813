import { failure, ok, type Answer } from './answer.js'
import type { Api, Call } from './call.js'
import * as configuration from './configuration.js'
import type { Generation } from './generation.js'
import * as runtime from './runtime.js'
import { nativeStats, processInfo } from './runtime-view.js'

export type Handler = (api: Api, call: Call) => Answer | Promise<Answer>

/** The methods of one path. */
export interface Route {
  readonly path: RegExp
  readonly methods: Readonly<Record<string, Handler>>
}

/** The routes of a generation, most specific first. */
export function routesOf(generation: Generation): readonly Route[] {
  const { tree } = generation
  const services = `/${tree}/services/haproxy`
  const route = (path: string, methods: Route['methods']): Route => ({
    path: new RegExp(`^${path.replaceAll('*', '([^/]+)')}/?$`),
    methods,
  })
  const servers = tree === 'v2' ? '/servers' : '/backends/*/servers'
  return [
    route(`/${tree}/info`, { GET: info }),
    route(`/${tree}/health`, { GET: health }),
    ...(generation.chi ? [] : [route(`/${tree}`, { GET: listing })]),
    route(services, { GET: listing }),
    route(`${services}/runtime`, { GET: listing }),
    route(`${services}/configuration`, { GET: listing }),
    route(`${services}/runtime/info`, {
      GET: async ({ cli }) => ok(await processInfo(cli, generation)),
    }),
    route(`${services}/stats/native`, {
      GET: async ({ cli }, { query }) => ok(await nativeStats(cli, generation, query)),
    }),
    route(`${services}/runtime${servers}`, { GET: runtime.list, POST: runtime.add }),
    route(`${services}/runtime${servers}/*`, {
      GET: runtime.one,
      PUT: runtime.replace,
      DELETE: runtime.remove,
    }),
    route(`${services}/configuration/version`, { GET: ({ store }) => ok(store.version) }),
    route(`${services}/configuration/raw`, {
      GET: configuration.rawText,
      POST: configuration.rawPush,
    }),
    route(`${services}/configuration/backends`, { POST: configuration.addBackend }),
    route(`${services}/configuration/backends/*`, { GET: configuration.backend }),
    route(`${services}/configuration/global`, { GET: configuration.global }),
    route(`${services}/configuration/defaults`, { GET: configuration.defaults }),
    ...(tree === 'v2'
      ? [route(`${services}/configuration/named_defaults`, { GET: configuration.namedDefaults })]
      : []),
    route(`${services}/configuration${servers}`, {
      GET: configuration.list,
      POST: configuration.add,
    }),
    route(`${services}/configuration${servers}/*`, {
      GET: configuration.one,
      PUT: configuration.replace,
      DELETE: configuration.remove,
    }),
    route(`${services}/reloads`, { GET: ({ reloads }) => ok(reloads.list()) }),
    route(`${services}/reloads/*`, {
      GET: ({ reloads }, { names: [id = ''] }) => {
        const entry = reloads.entry(id)
        return entry === undefined ? failure(404, `Reload with ID ${id} does not exist`) : ok(entry)
      },
    }),
    route(`${services}/transactions`, {
      GET: ({ store }) => ok(store.transactions()),
      POST: ({ store }, { query }) => ok(store.begin(query.get('version'), generation.chi), 201),
    }),
    route(`${services}/transactions/*`, {
      GET: ({ store }, { names: [id = ''] }) => ok(store.transaction(id)),
      PUT: configuration.commit,
      DELETE: ({ store }, { names: [id = ''] }) => {
        store.discard(id)
        return { status: 204 }
      },
    }),
  ]
}

function info({ generation }: Api): Answer {
  const version = `v${generation.version} fake`
  return ok({ api: { build_date: '2026-01-01T00:00:00.000Z', version }, system: {} })
}

async function health({ cli }: Api): Promise<Answer> {
  try {
    await cli.run('show info')
    return ok({ haproxy: 'up' })
  } catch {
    return ok({ haproxy: 'down' })
  }
}

function listing(): Answer {
  const names = ['configuration', 'runtime', 'stats', 'reloads', 'transactions']
  return ok(
    names.map((name) => ({
      description: `Endpoints for ${name}`,
      title: `Return ${name} endpoints`,
      url: `/services/haproxy/${name}`,
    })),
  )
}
