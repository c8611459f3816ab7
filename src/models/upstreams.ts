import { Value } from '@sinclair/typebox/value'
import type { Config } from '#config/schema.ts'
import { requireUpstreamKind, type UpstreamKind } from '#inference/upstreams/index.ts'
import type { ConfiguredUpstream } from './catalogue.ts'
import { localUpstreamName } from './llama-config.ts'
import { upstreamEntry } from './upstream-config.ts'

/**
 * The upstreams of the configuration, or the built-in demo if there are none, plus the one for models
 * on this machine unless the configuration has it.
 */
export function configuredUpstreams({
  upstream: configured,
  llama,
}: Pick<Config, 'upstream'> & { llama: Pick<Config['llama'], 'enabled'> }): ConfiguredUpstream[] {
  const hasLocal = configured.some(({ name, api }) => api === 'llama' || name === localUpstreamName)
  const entries = [
    ...(configured.length === 0 ? [builtIn('demo', 'demo')] : configured),
    ...(llama.enabled && !hasLocal ? [builtIn(localUpstreamName, 'llama')] : []),
  ]
  return entries.map((entry) => ({
    upstream: {
      name: entry.name,
      kind: requireUpstreamKind(entry.api),
      baseUrl: (entry.url ?? '').replace(/\/+$/, ''),
      key: entry.key,
      headers: entry.headers,
      // Local models count tokens with their own tokenizer.
      quirks: entry.api === 'llama' ? { ...entry, tokenCounter: 'native' } : entry,
    },
    weight: entry.weight,
    models: entry.models ?? null,
    access: entry.access,
  }))
}

/** An entry with the defaults of the configuration. */
function builtIn(name: string, api: UpstreamKind): Config['upstream'][number] {
  return Value.Parse(upstreamEntry, { name, api })
}
