import { type Static, Type } from '@sinclair/typebox'
import { appGatewayKeys } from '#app-gateway/config.ts'
import { auditKeys } from '#audit/config.ts'
import { authKeys } from '#auth/config.ts'
import { batchesKeys } from '#batches/config.ts'
import { brandingKeys } from '#branding/config.ts'
import { docsKeys } from '#docs/config.ts'
import { edgeKeys } from '#edges/config.ts'
import { filesKeys } from '#files/config.ts'
import { hookKeys } from '#hooks/config.ts'
import { hostedToolKeys, hostedToolLimits } from '#hosted-tools/config.ts'
import { installerKeys } from '#installer/config.ts'
import { budgetKeys, limitScopeKeys } from '#limits/config.ts'
import { modelsKeys } from '#models/config.ts'
import { metricsKeys } from '#operations/config.ts'
import { responsesKeys } from '#responses/config.ts'
import { retrievalKeys } from '#retrieval/config.ts'
import { sealingKeys } from '#sealing/config.ts'
import { loginKeys } from '#sessions/config.ts'
import { speechKeys } from '#speech/config.ts'
import { storageKeys } from '#storage/config.ts'
import { tracingKeys } from '#telemetry/tracing/config.ts'
import { tlsKeys } from '#tls/config.ts'
import { translationsKeys } from '#translations/config.ts'
import { usageKeys } from '#usage/config.ts'
import { consoleKeys } from '#web-console/config.ts'
import { webhooksKeys } from '#webhooks/config.ts'
import { choice, reloading, reloadingKeys, section, text, whole } from './keys.ts'

/**
 * Every configuration key with type, default, unit (the last word of its name) and description. The
 * file has snake_case keys (`heartbeat_ms`), the code camelCase. A key with `env` can be set by that
 * environment variable, which takes precedence over the file. A `secret` is never printed. A feature
 * declares its keys in its own `config.ts`.
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
    databaseWaitMs: whole('How long a request waits for the database before it ends with 503.', {
      default: 2_000,
      minimum: 100,
      env: 'SLUICE_DATABASE_WAIT_MS',
    }),
    workers: whole('Worker processes. More than one needs DATABASE_URL.', {
      default: 1,
      minimum: 1,
      env: 'SLUICE_WORKERS',
    }),
    computeNice: whole(
      'Nice value of the processes that run models on this machine: 0 is the priority of the gateway, 19 the lowest.',
      { default: 10, minimum: 0, maximum: 19, env: 'SLUICE_COMPUTE_NICE' },
    ),
    platformVersion: choice(
      'Platform release to behave as. 1.2.0 refuses API keys in Authorization and has no /compat.',
      ['1.2.1', '1.2.0'],
      { env: 'PLATFORM_VERSION' },
    ),
    logLevel: reloading(
      Type.Union(
        [Type.Literal('debug'), Type.Literal('info'), Type.Literal('warn'), Type.Literal('error')],
        { description: 'Minimum severity of log lines.', default: 'info', env: 'LOG_LEVEL' },
      ),
    ),
    logFormat: reloading(
      choice('One JSON object per line, or readable text.', ['json', 'text'], {
        env: 'LOG_FORMAT',
      }),
    ),
    accessLog: reloading(
      choice(
        'Requests that have a line in the log: all, only those that did not complete, or none. Status 500 and above always has one.',
        ['all', 'errors', 'off'],
        { env: 'SLUICE_ACCESS_LOG' },
      ),
    ),
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
    limits: section('Limits of one request, of one worker, and of users, groups and models.', {
      requestBytesMax: whole('Maximum request body, in bytes.', {
        default: 33_554_432,
        minimum: 1024,
      }),
      ...reloadingKeys({
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
        ...limitScopeKeys,
      }),
    }),
    warmUpMs: whole(
      'How long each worker at most serves requests of its own before it listens, so that the first callers do not wait for compilation; 0 switches that off.',
      { default: 300, minimum: 0, env: 'SLUICE_WARM_UP_MS' },
    ),
    drain: section('Shutdown.', {
      graceMs: whole('How long running streams may continue after SIGTERM.', {
        default: 30_000,
        minimum: 0,
        env: 'SLUICE_DRAIN_MS',
      }),
    }),
    ...tlsKeys,
    ...edgeKeys,
    ...budgetKeys,
    ...authKeys,
    ...loginKeys,
    ...modelsKeys,
    ...responsesKeys,
    ...batchesKeys,
    ...webhooksKeys,
    ...sealingKeys,
    ...hostedToolKeys,
    ...hookKeys,
    ...appGatewayKeys,
    ...speechKeys,
    ...filesKeys,
    ...storageKeys,
    ...retrievalKeys,
    ...installerKeys,
    ...brandingKeys,
    ...translationsKeys,
    ...auditKeys,
    ...usageKeys,
    ...metricsKeys,
    ...docsKeys,
    ...tracingKeys,
    ...consoleKeys,
  },
  { additionalProperties: false },
)

/** The source of a key that does not have its default value. */
export type ConfigSource =
  | { readonly kind: 'file' }
  | { readonly kind: 'environment'; readonly variable: string }

export type Config = Static<typeof configSchema> & {
  /** Among the workers of this machine, from 0; each has its share of what they share. */
  readonly workerIndex?: number
  /** By key of the file: `retrieval.rerank_top_n`. */
  readonly sources: Readonly<Record<string, ConfigSource>>
  /** Former names in use: of keys of the file, or of variables. */
  readonly formerNames: readonly { readonly name: string; readonly use: string }[]
}
export type ModelConfig = Config['model'][number]
export type EngineConfig = Config['engine'][number]
