import { existsSync } from 'node:fs'
import { Type } from '@sinclair/typebox'
import { choice, reloading, section, whole } from '#config/keys.ts'
import type { Config } from '#config/schema.ts'
import { fliteKeys, fliteUpstreamName } from './flite-config.ts'
import { healthKeys } from './health-config.ts'
import { llamaKeys, localUpstreamName } from './llama-config.ts'
import { configuredTargets, modelEntry } from './model-config.ts'
import { onnxKeys, onnxUpstreamName } from './onnx-config.ts'
import { accessRules, upstreamEntry } from './upstream-config.ts'

/** The keys of models and of requests to their upstreams. */
export const modelsKeys = {
  upstream: reloading(
    Type.Array(upstreamEntry, {
      description: 'Inference endpoints. Without any, the built-in demo models are offered.',
      default: [],
    }),
  ),
  model: reloading(
    Type.Array(modelEntry, {
      description: 'Models with a name, an order of upstreams or aliases that you choose.',
      default: [],
    }),
  ),
  models: reloading(
    section('The model list.', {
      refreshMs: whole('How often the model list of each upstream is refreshed.', {
        default: 30_000,
        minimum: 100,
      }),
      refreshTimeoutMs: whole('Timeout of such a refresh.', {
        default: 5_000,
        minimum: 10,
      }),
      access: accessRules(
        'Restricts models to groups, beside the rules of [[upstream]] and [[model]]: { models = "gpt-*", groups = ["staff"] }. A model that several rules name is for the groups of all of them; one that no rule names is not restricted further. Administrators can change it at run time.',
      ),
    }),
  ),
  compat: section('The Messages-compatible surface under /compat.', {
    prefix: Type.String({
      description:
        'Prefix of model names (prefix-model-name) and agent names (prefix-agent-id). Some clients list only names that begin with their vendor.',
      default: 'vendor',
      pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
    }),
  }),
  transport: choice(
    'HTTP client for upstreams: socket is our own HTTP/1.1 client; fetch is that of Bun, which supports HTTP_PROXY, HTTPS_PROXY and HTTP/2. fetch costs more per event, has no connect deadline, does not retry on stale connections, and tolerates malformed responses.',
    ['socket', 'fetch'],
    { env: 'SLUICE_TRANSPORT' },
  ),
  deadlines: reloading(
    section('Deadlines of upstream requests, each with its own error code.', {
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
  ),
  retry: reloading(
    section('Retries of upstream requests that failed before the first output.', {
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
  ),
  queue: reloading(
    section(
      'Requests that wait because every upstream of their model has max_in_flight requests.',
      {
        waitMaxMs: whole('Longest wait; then the request is refused with 503.', {
          default: 60_000,
          minimum: 0,
        }),
        backgroundWaitMaxMs: whole(
          'The same for background responses, indexing and requests with service_tier = "flex".',
          { default: 600_000, minimum: 0 },
        ),
        waitingMax: whole(
          'Waiting requests per model, priority and worker; more are refused with 503.',
          { default: 1_000, minimum: 1 },
        ),
        waitingPerPrincipalMax: whole(
          'Of these, requests of one API key, or of one user without a key; more are refused with 429. Nobody gets more places than are free.',
          { default: 100, minimum: 1 },
        ),
      },
    ),
  ),
  ...healthKeys,
  ...llamaKeys,
  ...onnxKeys,
  ...fliteKeys,
  tokens: section('Counting input tokens.', {
    tokenizer: choice(
      'Built-in tokenizer for models without one; uses 100 MB after the first count.',
      ['o200k', 'none'],
    ),
    patienceMs: whole('How long a count may take before an estimate is returned.', {
      default: 1_000,
      minimum: 0,
    }),
    upstreamMs: whole('Timeout of the counter of an upstream, within patience_ms.', {
      default: 300,
      minimum: 1,
    }),
    upstreamAbsentMs: whole('How long a missing counter of an upstream is not tried again.', {
      default: 300_000,
      minimum: 0,
    }),
    textsMax: whole('Cached token counts.', { default: 20_000, minimum: 1 }),
    calibrateEveryMs: whole('How often counts are calibrated against reported usage.', {
      default: 1_000,
      minimum: 0,
    }),
    calibratedModelsMax: whole('Models with calibration data.', {
      default: 500,
      minimum: 1,
    }),
  }),
}

/** Rules of these keys beyond the schema. */
export function* modelsFaults(config: Config): Generator<string> {
  yield* upstreamNameFaults(config)
  yield* modelFaults(config)
}

function* upstreamNameFaults({ upstream }: Config): Generator<string> {
  const names = new Set<string>()
  for (const [at, { name }] of upstream.entries()) {
    if (names.has(name)) yield `upstream.${at}.name: "${name}" is used twice.`
    names.add(name)
  }
}

function* modelFaults({ model, upstream, llama, onnx, flite }: Config): Generator<string> {
  const upstreams = new Set(upstream.map(({ name }) => name))
  if (llama.enabled) upstreams.add(localUpstreamName)
  if (onnx.enabled) upstreams.add(onnxUpstreamName)
  if (flite.enabled) upstreams.add(fliteUpstreamName)
  const names = new Set<string>()
  for (const [at, entry] of model.entries()) {
    const { name, aliases, tokenizer } = entry
    for (const spelling of [name, ...aliases]) {
      if (names.has(spelling)) yield `model.${at}: the name "${spelling}" is used twice.`
      names.add(spelling)
    }
    if (tokenizer !== undefined && !existsSync(tokenizer)) {
      yield `model.${at}.tokenizer: there is no file ${tokenizer}.`
    }
    yield* targetFaults(entry, `model.${at}`, upstreams)
    yield* fallbackFaults(entry, `model.${at}`, model)
  }
}

function* targetFaults(
  entry: Config['model'][number],
  at: string,
  upstreams: ReadonlySet<string>,
): Generator<string> {
  const targets = configuredTargets(entry)
  if (targets.length === 0) yield `${at}: set upstreams or targets.`
  if (entry.targets.length > 0 && entry.upstreams.length > 0) {
    yield `${at}: set either upstreams or targets.`
  }
  const key = entry.targets.length > 0 ? 'targets' : 'upstreams'
  for (const { upstream } of targets) {
    if (!upstreams.has(upstream)) yield `${at}.${key}: no upstream "${upstream}".`
  }
}

/** Fallbacks may also be models that upstreams list, which are not known here. */
function* fallbackFaults(
  { name, aliases, mode, fallbacks }: Config['model'][number],
  at: string,
  models: Config['model'],
): Generator<string> {
  for (const fallback of fallbacks) {
    const model = models.find((each) => each.name === fallback || each.aliases.includes(fallback))
    const otherMode = model?.mode ?? 'generate'
    if (fallback === name || aliases.includes(fallback)) {
      yield `${at}.fallbacks: "${fallback}" is the model itself.`
    } else if (otherMode !== mode) {
      yield `${at}.fallbacks: "${fallback}" has the mode ${otherMode}; ${mode} is required.`
    }
  }
}
