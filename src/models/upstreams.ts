import type { Config } from '#config/schema.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { requireUpstreamKind, type UpstreamKind } from '#inference/upstreams/index.ts'
import type { ConfiguredUpstream } from './catalogue.ts'
import { localUpstreamName } from './llama-config.ts'

/**
 * The upstreams of the configuration, or the built-in demo if there are none, plus the one for models
 * on this machine unless the configuration has it.
 */
export function configuredUpstreams({
  upstream: entries,
  llama,
}: Pick<Config, 'upstream'> & { llama: Pick<Config['llama'], 'enabled'> }): ConfiguredUpstream[] {
  const configured = entries.map((entry) => ({
    upstream: {
      name: entry.name,
      kind: requireUpstreamKind(entry.api),
      baseUrl: (entry.url ?? '').replace(/\/+$/, ''),
      key: entry.key,
      headers: entry.headers,
      quirks: entry.api === 'llama' ? { ...entry, ...localQuirks } : entry,
    },
    weight: entry.weight,
    models: entry.models ?? null,
  }))
  const hasLocal = entries.some(({ name, api }) => api === 'llama' || name === localUpstreamName)
  return [
    ...(entries.length === 0 ? [builtIn('demo', 'demo', {})] : configured),
    ...(llama.enabled && !hasLocal ? [builtIn(localUpstreamName, 'llama', localQuirks)] : []),
  ]
}

/** Local models count tokens with their own tokenizer. */
const localQuirks = { tokenCounter: 'native' } as const

function builtIn(
  name: string,
  kind: UpstreamKind,
  quirks: Partial<UpstreamQuirks>,
): ConfiguredUpstream {
  return {
    upstream: {
      name,
      kind,
      baseUrl: '',
      key: undefined,
      headers: {},
      quirks: { ...builtInQuirks, ...quirks },
    },
    weight: 1,
    models: null,
  }
}

const builtInQuirks: UpstreamQuirks = {
  maxTokensField: 'max_tokens',
  reasoningFields: [],
  reasoningEffort: 'none',
  streamUsage: true,
  lateSystemMessages: true,
  prefill: 'automatic',
  developerRole: true,
  strictTools: true,
  thinkTags: false,
  vendorFields: false,
  files: true,
  keyHeader: 'x-api-key',
  thinking: 'none',
  outputFormat: true,
  defaultMaxTokens: 32_000,
  rerankFields: 'documents',
  tokenCounter: 'none',
}
