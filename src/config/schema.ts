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
 * Every configuration key with type, default, unit (the last word of its name) and description. The
 * file has snake_case keys (`heartbeat_ms`), the code camelCase. A key with `env` can be set by that
 * environment variable, which takes precedence over the file. A `secret` is never printed.
 */
export const configSchema = Type.Object(
  {
    host: text('Listen address.', { default: '127.0.0.1', env: 'HOST' }),
    port: Type.Integer({
      description: 'TCP port; 0 picks a free one.',
      default: 8080,
      minimum: 0,
      maximum: 65535,
      env: 'PORT',
    }),
    data: text('Data folder.', {
      default: './data',
      env: 'SLUICE_DATA',
    }),
    databaseUrl: Type.Optional(
      text(
        'postgres://… URL. By default, an embedded PGlite database is kept in the data folder.',
        {
          env: 'DATABASE_URL',
          secret: true,
        },
      ),
    ),
    databaseConnectionsMax: whole('PostgreSQL connections per worker.', {
      default: 8,
      minimum: 1,
    }),
    workers: whole('Worker processes. More than one needs DATABASE_URL.', {
      default: 1,
      minimum: 1,
      env: 'SLUICE_WORKERS',
    }),
    platformVersion: Type.String({
      description:
        'Platform release to behave as. Releases before 1.2.1 refuse API keys in Authorization.',
      default: '1.2.1',
      pattern: '^\\d+\\.\\d+\\.\\d+$',
      env: 'PLATFORM_VERSION',
    }),
    logLevel: Type.Union(
      [Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'), Type.Literal('error')],
      { description: 'Minimum severity of log lines.', default: 'info', env: 'LOG_LEVEL' },
    ),
    logFormat: Type.Union([Type.Literal('json'), Type.Literal('text')], {
      description: 'One JSON object per line, or readable text.',
      default: 'json',
      env: 'LOG_FORMAT',
    }),
    jwt: section('Verification of bearer tokens.', {
      secret: Type.Optional(
        Type.String({
          description: 'HS256 secret of tokens that you sign yourself; at least 32 bytes.',
          minLength: 1,
          env: 'JWT_SECRET',
          secret: true,
        }),
      ),
      jwksUrl: Type.Optional(
        text('Key set URL of the identity provider.', { env: 'JWT_JWKS_URL' }),
      ),
      issuer: Type.Optional(
        text('Exact iss claim; required with jwks_url.', { env: 'JWT_ISSUER' }),
      ),
      audience: Type.Optional(
        text('Exact aud claim; required with jwks_url.', { env: 'JWT_AUDIENCE' }),
      ),
      algorithms: Type.Array(
        Type.String({ pattern: '^(RS|PS|ES)(256|384|512)$|^EdDSA$|^Ed25519$' }),
        {
          description: 'Allowed signature algorithms of jwks_url keys.',
          default: ['RS256', 'ES256', 'EdDSA'],
          minItems: 1,
        },
      ),
      groupsClaim: text('Claim that lists the groups of the caller.', {
        default: 'groups',
        env: 'JWT_GROUPS_CLAIM',
      }),
      clockSkewS: Type.Integer({
        description: 'Allowed clock difference.',
        default: 30,
        minimum: 0,
        maximum: 60,
      }),
      jwksAgeMaxS: whole('How long the last key set is used while the provider is unreachable.', {
        default: 86_400,
        minimum: 60,
      }),
    }),
    apiKeys: section('API keys.', {
      pepper: Type.Optional(
        Type.String({
          description: 'HMAC key for stored API keys; changing it invalidates every key.',
          minLength: 16,
          env: 'SLUICE_KEY_PEPPER',
          secret: true,
        }),
      ),
      cacheMs: whole('How long a verified key is cached.', {
        default: 5_000,
        minimum: 0,
      }),
    }),
    groups: Type.Record(
      Type.String(),
      Type.Array(Type.Union(permissionNames.map((name) => Type.Literal(name)))),
      {
        description:
          'Permissions by group name. Predefined: admins has all, users has can_access_api. Groups listed here are overwritten at each start.',
        default: {},
      },
    ),
    upstream: Type.Array(upstreamEntry, {
      description: 'Inference endpoints. Without any, the built-in demo models are offered.',
      default: [],
    }),
    model: Type.Array(modelEntry, {
      description: 'Models with a name, an order of upstreams or aliases that you choose.',
      default: [],
    }),
    ...mcpKeys,
    models: section('The model list.', {
      refreshMs: whole('How often the model list of each upstream is refreshed.', {
        default: 30_000,
        minimum: 100,
      }),
      refreshTimeoutMs: whole('Timeout of such a refresh.', {
        default: 5_000,
        minimum: 10,
      }),
    }),
    compat: section('The Messages-compatible surface under /compat.', {
      prefix: Type.String({
        description:
          'Prefix of model names (prefix-model-name) and agent names (prefix-agent-id). Some clients list only names that begin with their vendor.',
        default: 'vendor',
        pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
      }),
    }),
    transport: Type.Union([Type.Literal('socket'), Type.Literal('fetch')], {
      description:
        'HTTP client for upstreams: socket is our own HTTP/1.1 client; fetch is that of Bun, which supports HTTP_PROXY, HTTPS_PROXY and HTTP/2. fetch costs more per event, has no connect deadline, does not retry on stale connections, and tolerates malformed responses.',
      default: 'socket',
      env: 'SLUICE_TRANSPORT',
    }),
    deadlines: section('Deadlines of upstream requests, each with its own error code.', {
      connectMs: whole('Time to connect; not enforced with transport = "fetch".', {
        default: 5_000,
        minimum: 1,
      }),
      firstEventMs: whole('Time from the request to the first event.', {
        default: 300_000,
        minimum: 1,
      }),
      gapMs: whole('Time between two reads of a running stream.', { default: 300_000, minimum: 1 }),
      totalMs: whole('Time for the whole generation.', { default: 600_000, minimum: 1 }),
    }),
    retry: section('Retries of upstream requests that failed before the first output.', {
      retriesMax: Type.Integer({
        description: 'Maximum retries.',
        default: 3,
        minimum: 0,
        maximum: 3,
      }),
      backoffMs: whole('First pause; it doubles, with jitter.', {
        default: 200,
        minimum: 0,
      }),
      retryAfterMaxMs: whole('Longest Retry-After of an upstream that is honoured.', {
        default: 10_000,
        minimum: 0,
      }),
    }),
    stream: section('Streams to clients.', {
      heartbeatMs: whole('Heartbeat interval of a silent stream.', {
        default: 15_000,
        minimum: 10,
      }),
      readerStallMs: whole('Time without reading after which a client is disconnected.', {
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
    limits: section('Limits of one request and of one worker.', {
      requestBytesMax: whole('Maximum request body, in bytes.', {
        default: 33_554_432,
        minimum: 1024,
      }),
      inputCharsMax: whole('Maximum input text of a generation, in characters.', {
        default: 10_485_760,
        minimum: 1,
      }),
      jsonDepthMax: whole('Maximum nesting depth of a JSON body.', { default: 128, minimum: 8 }),
      inputItemsMax: whole('Maximum items per input.', { default: 10_000, minimum: 1 }),
      toolsMax: whole('Maximum tools per request.', { default: 1_024, minimum: 1 }),
      ...hostedToolLimits,
      outputCharsMax: whole('Maximum output text of a generation, in characters.', {
        default: 33_554_432,
        minimum: 1024,
      }),
      eventBytesMax: whole('Maximum size of an upstream event, in bytes.', {
        default: 16_777_216,
        minimum: 1024,
      }),
      toolArgumentCharsMax: whole('Maximum tool call arguments of a generation, in characters.', {
        default: 8_388_608,
        minimum: 1024,
      }),
      streamsMax: whole('Concurrent generations per worker; more are refused with 503.', {
        default: 10_000,
        minimum: 1,
      }),
    }),
    audit: section('Audit log of administrative changes.', {
      keepDays: whole('How long entries are kept.', { default: 365, minimum: 1, maximum: 36_500 }),
    }),
    drain: section('Shutdown.', {
      graceMs: whole('How long running streams may continue after SIGTERM.', {
        default: 30_000,
        minimum: 0,
        env: 'SLUICE_DRAIN_MS',
      }),
    }),
  },
  { additionalProperties: false },
)

/** The source of a key that does not have its default value. */
export type ConfigSource =
  | { readonly kind: 'file' }
  | { readonly kind: 'environment'; readonly variable: string }

export type Config = Static<typeof configSchema> & {
  /** By key of the file: `retrieval.rerank_top_n`. */
  readonly sources: Readonly<Record<string, ConfigSource>>
}
export type ModelConfig = Config['model'][number]
export type EngineConfig = Config['engine'][number]
