import type { UpstreamConfig } from '#config/schema.ts'
import type { ConfiguredUpstream } from './catalogue.ts'

/** The upstreams of the configuration; where there are none, the built-in demo stands in. */
export function configuredUpstreams(entries: readonly UpstreamConfig[]): ConfiguredUpstream[] {
  if (entries.length === 0) return [demo]
  return entries.map((entry) => ({
    upstream: {
      name: entry.name,
      kind: entry.api,
      baseUrl: (entry.url ?? '').replace(/\/+$/, ''),
      key: entry.key,
      headers: entry.headers,
      quirks: entry,
    },
    weight: entry.weight,
    models: entry.models ?? null,
  }))
}

const demo: ConfiguredUpstream = {
  upstream: {
    name: 'demo',
    kind: 'demo',
    baseUrl: '',
    key: undefined,
    headers: {},
    quirks: {
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
    },
  },
  weight: 1,
  models: null,
}
