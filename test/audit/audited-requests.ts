import { userIdOf } from '#auth/principal.ts'
import { type Administration, type Body, svg } from './administrative-changes.ts'

/** A request that changes something by an administrative permission. */
export type Change = {
  /** The action of the entry. */
  readonly action: string
  /** The request, with the ids of the resources that `prepare` made. */
  request(world: Administration): Promise<[operation: string, body?: Body]>
  /** A body or resource that is refused; default: the same place without the resource. */
  readonly refused?: readonly [operation: string, body?: Body]
  /** It is refused for a missing permission alone. */
  readonly isNeverInvalid?: true
  /** API keys are refused. */
  readonly needsToken?: true
}

let made = 0
export const nextName = () => `name-${++made}`
export const absent = '0198a000-0000-7000-8000-000000000000'

async function group(world: Administration): Promise<string> {
  const name = nextName()
  await world.prepare('POST /v1/groups', { name, permissions: [] })
  return name
}

/** A user who has sent a request. */
async function user(world: Administration): Promise<string> {
  const name = nextName()
  await world.send(await world.tokenOf(name, 'users'), 'GET /v1/me')
  return userIdOf(name)
}

async function robot(world: Administration): Promise<string> {
  const { id } = await world.prepare('POST /v1/service-accounts', { name: nextName() })
  return String(id)
}

async function robotKey(world: Administration): Promise<string> {
  const place = `/v1/service-accounts/${await robot(world)}/api-keys`
  const { id } = await world.prepare(`POST ${place}`, { name: 'key' })
  return `${place}/${id}`
}

/** The key of another user. */
async function foreignKey(world: Administration): Promise<string> {
  const bearer = await world.tokenOf(nextName(), 'users')
  const { body } = await world.send(bearer, 'POST /v1/api-keys', { name: 'key' })
  return `/v1/api-keys/${body['id']}`
}

/** The agent of another user that everyone may call. */
async function foreignAgent(world: Administration): Promise<string> {
  const bearer = await world.tokenOf(nextName(), 'users')
  const { body } = await world.send(bearer, 'POST /v1/agents', {
    name: 'agent',
    model: 'writer',
    visibility: { kind: 'everyone' },
  })
  return `/v1/agents/${body['id']}`
}

const [downloads, models] = ['downloads', 'models'].map((name) => `/v1/model-installer/${name}`)
async function download(world: Administration, isPaused = false): Promise<string> {
  const name = nextName()
  const model = world.origin.put(`/${name}.gguf`, new Uint8Array(10))
  const started = await world.prepare(`POST ${downloads}`, { model, name })
  const place = `${downloads}/${started['download_id']}`
  if (isPaused) await world.prepare(`POST ${place}/pause`)
  return place
}

/** Sets the status of the queued reindex; no driver runs it. */
async function reindex(world: Administration, status: string): Promise<string> {
  const { queued } = world.reindexes
  await world.gateway.deps.database.drizzle.execute(
    `update reindex set status = '${status}' where id = '${queued}'`,
  )
  return `/v1/embeddings/reindex/${queued}`
}
const reindexAction = (action: string, from: string): Change => ({
  action: `reindex.${action}`,
  request: async (world) => [`POST ${await reindex(world, from)}/${action}`],
})

/** By endpoint, some with a part of the permission: keys and agents of others. */
export const changes: Readonly<Record<string, Change>> = {
  'POST /v1/groups': {
    action: 'group.create',
    request: async () => ['POST /v1/groups', { name: nextName() }],
    refused: ['POST /v1/groups', { name: '' }],
  },
  'PATCH /v1/groups/:id': {
    action: 'group.update',
    request: async (world) => [
      `PATCH /v1/groups/${await group(world)}`,
      { description: 'changed' },
    ],
  },
  'DELETE /v1/groups/:id': {
    action: 'group.delete',
    request: async (world) => [`DELETE /v1/groups/${await group(world)}`],
  },
  'PUT /v1/groups/:id/members/:user_id': {
    action: 'group.member.add',
    request: async (world) => [`PUT /v1/groups/${await group(world)}/members/${await user(world)}`],
  },
  'DELETE /v1/groups/:id/members/:user_id': {
    action: 'group.member.remove',
    async request(world) {
      const place = `/v1/groups/${await group(world)}/members/${await user(world)}`
      await world.prepare(`PUT ${place}`)
      return [`DELETE ${place}`]
    },
  },
  'PATCH /v1/users/:id': {
    action: 'user.disable',
    request: async (world) => [`PATCH /v1/users/${await user(world)}`, { disabled: true }],
  },
  'POST /v1/service-accounts': {
    action: 'service_account.create',
    request: async (_world) => ['POST /v1/service-accounts', { name: nextName() }],
    refused: ['POST /v1/service-accounts', { name: 7 }],
  },
  'DELETE /v1/service-accounts/:id': {
    action: 'service_account.delete',
    request: async (world) => [`DELETE /v1/service-accounts/${await robot(world)}`],
  },
  'POST /v1/service-accounts/:id/api-keys': {
    action: 'api_key.create',
    needsToken: true,
    request: async (world) => [
      `POST /v1/service-accounts/${await robot(world)}/api-keys`,
      { name: 'key' },
    ],
  },
  'PATCH /v1/service-accounts/:id/api-keys/:key_id': {
    action: 'api_key.update',
    needsToken: true,
    request: async (world) => [`PATCH ${await robotKey(world)}`, { name: 'other' }],
  },
  'POST /v1/service-accounts/:id/api-keys/:key_id/rotate': {
    action: 'api_key.rotate',
    needsToken: true,
    request: async (world) => [`POST ${await robotKey(world)}/rotate`, {}],
  },
  'DELETE /v1/service-accounts/:id/api-keys/:key_id': {
    action: 'api_key.revoke',
    request: async (world) => [`DELETE ${await robotKey(world)}`],
  },
  'PATCH /v1/api-keys/:id of another user': {
    action: 'api_key.update',
    needsToken: true,
    request: async (world) => [`PATCH ${await foreignKey(world)}`, { name: 'other' }],
  },
  'DELETE /v1/api-keys/:id of another user': {
    action: 'api_key.revoke',
    request: async (world) => [`DELETE ${await foreignKey(world)}`],
  },
  'PATCH /v1/agents/:id of another user': {
    action: 'agent.update',
    request: async (world) => [`PATCH ${await foreignAgent(world)}`, { description: 'changed' }],
    refused: [`PATCH /v1/agents/${absent}`, {}],
  },
  'DELETE /v1/agents/:id of another user': {
    action: 'agent.delete',
    request: async (world) => [`DELETE ${await foreignAgent(world)}`],
  },
  'POST /v1/upstreams/:name/drain': {
    action: 'upstream.drain',
    request: async (_world) => ['POST /v1/upstreams/upstream-0/drain'],
  },
  'DELETE /v1/upstreams/:name/drain': {
    action: 'upstream.resume',
    async request(world) {
      await world.prepare('POST /v1/upstreams/upstream-0/drain')
      return ['DELETE /v1/upstreams/upstream-0/drain']
    },
  },
  'POST /v1/embeddings/reindex': {
    action: 'reindex.start',
    async request(world) {
      const { id } = await world.prepare('POST /v1/collections', { name: nextName() })
      await reindex(world, 'cancelled')
      const chunking = { max_tokens: 200, overlap_tokens: 0 }
      const body = { embedding_model: 'local-hash', chunking, collections: [id] }
      return ['POST /v1/embeddings/reindex', body]
    },
    refused: ['POST /v1/embeddings/reindex', { embedding_model: 7 }],
  },
  'POST /v1/embeddings/reindex/:id/pause': reindexAction('pause', 'running'),
  'POST /v1/embeddings/reindex/:id/resume': reindexAction('resume', 'paused'),
  'POST /v1/embeddings/reindex/:id/retry': reindexAction('retry', 'needs_attention'),
  'POST /v1/embeddings/reindex/:id/accept': reindexAction('accept', 'needs_attention'),
  'POST /v1/embeddings/reindex/:id/cancel': reindexAction('cancel', 'running'),
  'POST /v1/embeddings/reindex/:id/revert': {
    action: 'reindex.revert',
    async request(world) {
      await reindex(world, 'cancelled')
      return [`POST /v1/embeddings/reindex/${world.reindexes.completed}/revert`]
    },
  },
  'POST /v1/model-installer/downloads': {
    action: 'model_download.start',
    async request(world) {
      const name = nextName()
      const model = world.origin.put(`/${name}.gguf`, new Uint8Array(10))
      return [`POST ${downloads}`, { model, name }]
    },
    refused: [`POST ${downloads}`, { model: '../x', source: 'hub' }],
  },
  'DELETE /v1/model-installer/downloads/:download_id': {
    action: 'model_download.discard',
    request: async (world) => [`DELETE ${await download(world)}`],
  },
  'POST /v1/model-installer/downloads/:download_id/cancel': {
    action: 'model_download.cancel',
    request: async (world) => [`POST ${await download(world)}/cancel`],
  },
  'POST /v1/model-installer/downloads/:download_id/pause': {
    action: 'model_download.pause',
    request: async (world) => [`POST ${await download(world)}/pause`],
  },
  'POST /v1/model-installer/downloads/:download_id/resume': {
    action: 'model_download.resume',
    request: async (world) => [`POST ${await download(world, true)}/resume`],
  },
  'DELETE /v1/model-installer/models/:name': {
    action: 'model.delete',
    request: async (_world) => [`DELETE ${models}/one`],
  },
  'DELETE /v1/model-installer/models/:name/:repository': {
    action: 'model.delete',
    request: async (_world) => [`DELETE ${models}/org/one`],
  },
  'POST /v1/model-installer/models/:name/verify': {
    action: 'model_download.verify',
    request: async (_world) => [`POST ${models}/two/verify`],
  },
  'POST /v1/model-installer/models/:name/:repository/verify': {
    action: 'model_download.verify',
    request: async (_world) => [`POST ${models}/org/two/verify`],
  },
  'PATCH /v1/config': {
    action: 'config.update',
    request: async (_world) => ['PATCH /v1/config', { retrieval_k: 7 }],
    refused: ['PATCH /v1/config', { retrieval_k: 0 }],
  },
  'POST /v1/config/rollback': {
    action: 'config.rollback',
    async request(world) {
      await world.prepare('PATCH /v1/config', { retrieval_k: 8 })
      return ['POST /v1/config/rollback', { revision: 0 }]
    },
    refused: ['POST /v1/config/rollback', { revision: 999_999 }],
  },
  'POST /v1/translations/reset': {
    action: 'translation.reset',
    async request(world) {
      await world.prepare('PATCH /v1/translations/de', { navigation: { away: 'Weg' } })
      return ['POST /v1/translations/reset', { language: 'de' }]
    },
    refused: ['POST /v1/translations/reset', { language: '!' }],
  },
  'PATCH /v1/translations/:language': {
    action: 'translation.update',
    request: async (_world) => [
      'PATCH /v1/translations/de',
      { navigation: { home: 'Startseite' } },
    ],
    refused: ['PATCH /v1/translations/de', { navigation: { home: 1 } }],
  },
  'PUT /v1/branding/theme': {
    action: 'branding.theme.update',
    request: async (_world) => ['PUT /v1/branding/theme', { product_name: 'Portal' }],
    refused: ['PUT /v1/branding/theme', { product_name: 1 }],
  },
  'POST /v1/branding/theme/reset': {
    action: 'branding.theme.reset',
    async request(world) {
      await world.prepare('PUT /v1/branding/theme', { product_name: 'Other' })
      return ['POST /v1/branding/theme/reset']
    },
    refused: ['POST /v1/branding/theme/reset', { theme: 1 }],
  },
  'POST /v1/branding/logo': {
    action: 'branding.logo.update',
    request: async (_world) => ['POST /v1/branding/logo', svg],
    refused: ['POST /v1/branding/logo', new Uint8Array(9)],
  },
  'DELETE /v1/branding/logo': {
    action: 'branding.logo.reset',
    async request(world) {
      await world.prepare('POST /v1/branding/logo', svg)
      return ['DELETE /v1/branding/logo']
    },
    isNeverInvalid: true,
  },
}
