import { Value } from '@sinclair/typebox/value'
import type { Config } from '#config/schema.ts'
import { requireUpstreamKind, type UpstreamKind } from '#inference/upstreams/index.ts'
import type { ConfiguredUpstream } from './catalogue.ts'
import { fliteUpstreamName } from './flite-config.ts'
import { localUpstreamName } from './llama-config.ts'
import { onnxUpstreamName } from './onnx-config.ts'
import { upstreamEntry } from './upstream-config.ts'

/**
 * The upstreams of the configuration, or the built-in demo if there are none, plus those for models
 * on this machine unless the configuration has them.
 */
export function configuredUpstreams({
  upstream: configured,
  llama,
  onnx,
  flite,
}: Pick<Config, 'upstream'> & {
  llama: Pick<Config['llama'], 'enabled'>
  onnx: Pick<Config['onnx'], 'enabled'>
  flite: Pick<Config['flite'], 'enabled'>
}): ConfiguredUpstream[] {
  const has = (kind: UpstreamKind, reserved: string) =>
    configured.some(({ name, api }) => api === kind || name === reserved)
  const entries = [
    ...(configured.length === 0 ? [builtIn('demo', 'demo')] : configured),
    ...(llama.enabled && !has('llama', localUpstreamName)
      ? [builtIn(localUpstreamName, 'llama')]
      : []),
    ...(onnx.enabled && !has('onnx', onnxUpstreamName) ? [builtIn(onnxUpstreamName, 'onnx')] : []),
    ...(flite.enabled && !has('flite', fliteUpstreamName)
      ? [builtIn(fliteUpstreamName, 'flite')]
      : []),
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
