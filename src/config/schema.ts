import { type Static, Type } from '@sinclair/typebox'
import { docsKeys } from './docs.ts'
import { modelEntry, upstreamEntry } from './entries.ts'
import { hostedToolLimits, mcpKeys } from './hosted-tools.ts'
import { installerKeys } from './installer.ts'
import { section, text, whole } from './keys.ts'
import { llamaKeys } from './llama.ts'
import { metricsKeys } from './metrics.ts'
import { portalKeys } from './portal.ts'
import { responsesKeys } from './responses.ts'
import { retrievalKeys } from './retrieval.ts'
import { speechKeys } from './speech.ts'
import { tokensKeys } from './tokens.ts'

export const permissionNames = [
  'can_access_api',
  'can_manage_models',
  'can_edit_config',
  'can_manage_groups',
] as const

/**
 * Every configuration key: its type, default, unit (the last word of its name) and meaning. The
 * file spells keys in snake_case (`heartbeat_ms`), the code in camelCase. A key with `env` can be
 * set by that environment variable, which wins over the file. A `secret` is never printed.
 */
export const configSchema = Type.Object(
  {
    host: text('The address to listen on.', { default: '127.0.0.1', env: 'HOST' }),
    port: Type.Integer({
      description: 'The TCP port to listen on; 0 picks a free one.',
      default: 8080,
      minimum: 0,
      maximum: 65535,
      env: 'PORT',
    }),
    data: text('The folder for everything that is kept on disk.', {
      default: './data',
      env: 'SLUICE_DATA',
    }),
    databaseUrl: Type.Optional(
      text('postgres://… ; without it an embedded PGlite database is kept in the data folder.', {
        env: 'DATABASE_URL',
        secret: true,
      }),
    ),
    databaseConnectionsMax: whole('Connections to PostgreSQL of each worker.', {
      default: 8,
      minimum: 1,
    }),
    workers: whole('Serving processes. More than one needs DATABASE_URL.', {
      default: 1,
      minimum: 1,
      env: 'SLUICE_WORKERS',
    }),
    platformVersion: Type.String({
      description:
        'The platform release to behave as; before 1.2.1 an API key is refused in Authorization.',
      default: '1.2.1',
      pattern: '^\\d+\\.\\d+\\.\\d+$',
      env: 'PLATFORM_VERSION',
    }),
    logLevel: Type.Union(
      [Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'), Type.Literal('error')],
      { description: 'The least severe lines to log.', default: 'info', env: 'LOG_LEVEL' },
    ),
    logFormat: Type.Union([Type.Literal('json'), Type.Literal('text')], {
      description: 'One JSON object a line, or text for a person.',
      default: 'json',
      env: 'LOG_FORMAT',
    }),
    jwt: section('How bearer tokens are verified.', {
      secret: Type.Optional(
        Type.String({
          description: 'The HS256 secret of tokens that you sign yourself; at least 32 bytes.',
          minLength: 1,
          env: 'JWT_SECRET',
          secret: true,
        }),
      ),
      jwksUrl: Type.Optional(
        text('The key set of your identity provider.', { env: 'JWT_JWKS_URL' }),
      ),
      issuer: Type.Optional(
        text('The exact iss claim; required with jwks_url.', { env: 'JWT_ISSUER' }),
      ),
      audience: Type.Optional(
        text('The exact aud claim; required with jwks_url.', { env: 'JWT_AUDIENCE' }),
      ),
      algorithms: Type.Array(
        Type.String({ pattern: '^(RS|PS|ES)(256|384|512)$|^EdDSA$|^Ed25519$' }),
        {
          description: 'The signature algorithms that keys of jwks_url may use.',
          default: ['RS256', 'ES256', 'EdDSA'],
          minItems: 1,
        },
      ),
      groupsClaim: text('The claim that lists the groups of the caller.', {
        default: 'groups',
        env: 'JWT_GROUPS_CLAIM',
      }),
      clockSkewS: Type.Integer({
        description: 'How far clocks may differ.',
        default: 30,
        minimum: 0,
        maximum: 60,
      }),
      jwksAgeMaxS: whole('How long the last good key set serves while the provider is down.', {
        default: 86_400,
        minimum: 60,
      }),
    }),
    apiKeys: section('API keys.', {
      pepper: Type.Optional(
        Type.String({
          description: 'Keyed hash of stored keys (HMAC); changing it ends every key.',
          minLength: 16,
          env: 'SLUICE_KEY_PEPPER',
          secret: true,
        }),
      ),
      cacheMs: whole('How long a found key is trusted without asking the database.', {
        default: 5_000,
        minimum: 0,
      }),
    }),
    groups: Type.Record(
      Type.String(),
      Type.Array(Type.Union(permissionNames.map((name) => Type.Literal(name)))),
      {
        description:
          'Group → permissions. Shipped: admins has all, users has can_access_api; groups named here are set anew at each start.',
        default: {},
      },
    ),
    upstream: Type.Array(upstreamEntry, {
      description: 'The upstreams. Without any, the built-in demo answers.',
      default: [],
    }),
    model: Type.Array(modelEntry, {
      description: 'Models with a name, an order of upstreams or aliases of your own.',
      default: [],
    }),
    ...mcpKeys,
    models: section('The model list.', {
      refreshMs: whole('How often each upstream is asked for its models.', {
        default: 30_000,
        minimum: 100,
      }),
      refreshTimeoutMs: whole('How long such a question may take.', {
        default: 5_000,
        minimum: 10,
      }),
    }),
    compat: section('The Messages-compatible surface under /compat.', {
      prefix: Type.String({
        description:
          'What the names of models (prefix-model-name) and agents (prefix-agent-id) begin with; some clients list only names that begin with their own vendor.',
        default: 'vendor',
        pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
      }),
    }),
    transport: Type.Union([Type.Literal('socket'), Type.Literal('fetch')], {
      description:
        "How upstreams are spoken to: socket is our own HTTP/1.1 client. fetch is Bun's, for what only it knows: the proxy that HTTP_PROXY or HTTPS_PROXY names, and HTTP/2 where Bun is told to offer it. It costs more for each event, has no deadline for connecting, does not repeat a request that met a dead connection, and reads malformed answers leniently.",
      default: 'socket',
      env: 'SLUICE_TRANSPORT',
    }),
    deadlines: section('How long an upstream may take; each ends with its own error code.', {
      connectMs: whole('To accept a connection; not held with transport fetch.', {
        default: 5_000,
        minimum: 1,
      }),
      firstEventMs: whole('From the request to the first event.', { default: 300_000, minimum: 1 }),
      gapMs: whole('Between two reads of a running stream.', { default: 300_000, minimum: 1 }),
      totalMs: whole('For the whole generation.', { default: 600_000, minimum: 1 }),
    }),
    retry: section('Repeating a failed upstream request before any output.', {
      retriesMax: Type.Integer({
        description: 'Further tries after the first.',
        default: 3,
        minimum: 0,
        maximum: 3,
      }),
      backoffMs: whole('The first pause; it doubles and is jittered.', {
        default: 200,
        minimum: 0,
      }),
      retryAfterMaxMs: whole('The longest Retry-After of an upstream that is waited for.', {
        default: 10_000,
        minimum: 0,
      }),
    }),
    stream: section('Streams to clients.', {
      heartbeatMs: whole('A silent stream is given a sign of life this often.', {
        default: 15_000,
        minimum: 10,
      }),
      readerStallMs: whole('A client that reads nothing for so long is cut off.', {
        default: 120_000,
        minimum: 10,
      }),
    }),
    ...installerKeys,
    ...docsKeys,
    ...llamaKeys,
    ...metricsKeys,
    ...portalKeys,
    ...responsesKeys,
    ...retrievalKeys,
    ...speechKeys,
    ...tokensKeys,
    limits: section('What one request, and one worker, may use.', {
      requestBytesMax: whole('The longest request body, in bytes.', {
        default: 33_554_432,
        minimum: 1024,
      }),
      inputCharsMax: whole('The most text in the input of one generation, in characters.', {
        default: 10_485_760,
        minimum: 1,
      }),
      jsonDepthMax: whole('The deepest nesting of a JSON body.', { default: 128, minimum: 8 }),
      inputItemsMax: whole('The most items in one input.', { default: 10_000, minimum: 1 }),
      toolsMax: whole('The most tools in one request.', { default: 1_024, minimum: 1 }),
      ...hostedToolLimits,
      outputCharsMax: whole('The most text in the output of one generation, in characters.', {
        default: 33_554_432,
        minimum: 1024,
      }),
      eventBytesMax: whole('The longest single event of an upstream, in bytes.', {
        default: 16_777_216,
        minimum: 1024,
      }),
      toolArgumentCharsMax: whole('The most tool-call arguments of one generation.', {
        default: 8_388_608,
        minimum: 1024,
      }),
      streamsMax: whole('Generations at once in one worker; more are refused with 503.', {
        default: 10_000,
        minimum: 1,
      }),
    }),
    audit: section('The record of what administrators did.', {
      keepDays: whole('How long an entry is kept.', { default: 365, minimum: 1, maximum: 36_500 }),
    }),
    drain: section('Stopping.', {
      graceMs: whole('How long running streams may go on after SIGTERM.', {
        default: 30_000,
        minimum: 0,
        env: 'SLUICE_DRAIN_MS',
      }),
    }),
  },
  { additionalProperties: false },
)

/** What gave a key its value; a key that has its default is given by nothing. */
export type ConfigSource =
  | { readonly kind: 'file' }
  | { readonly kind: 'environment'; readonly variable: string }

export type Config = Static<typeof configSchema> & {
  /** By key, spelled as in the file: `retrieval.rerank_top_n`. */
  readonly sources: Readonly<Record<string, ConfigSource>>
}
export type ModelConfig = Config['model'][number]
export type EngineConfig = Config['engine'][number]
