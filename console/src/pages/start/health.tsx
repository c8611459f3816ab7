import { call, type ResponseOf } from '../../api/call.ts'
import { may } from '../../session/session.ts'
import { format, text } from '../../texts/texts.ts'
import { Fault } from '../../ui/notice.tsx'
import { type Query, useQuery } from '../../ui/query.ts'

type Models = ResponseOf<'GET /v1/models'>
type Level = 'good' | 'warn' | 'bad' | ''

const everyMs = 10_000

/** Whether everything works, at a glance. */
export function Health({ models }: { models: Query<Models> }) {
  const ready = useQuery(async (signal) => (await fetch('/readyz', { signal })).ok, 'ready', {
    everyMs,
  })
  const list = models.data?.data
  const count = (mode: string) => list?.filter((model) => model.mode === mode).length
  const callable = count('generate')
  const isUp = ready.data === true && ready.error === undefined
  return (
    <section class="health" aria-label={text('start.health')}>
      <Item
        label={text('start.gateway')}
        level={ready.isLoading ? '' : isUp ? 'good' : 'bad'}
        value={ready.isLoading ? null : text(isUp ? 'start.gateway_up' : 'start.gateway_down')}
      />
      {may('can_manage_models') && <Database />}
      {may('can_manage_models') && <Upstreams />}
      <Item
        label={text('start.models')}
        level={callable === 0 ? 'warn' : callable === undefined ? '' : 'good'}
        value={
          callable === undefined
            ? null
            : callable === 0
              ? text('start.models_none')
              : format.number(callable)
        }
      />
      {may('can_manage_models') && <Engines />}
      {models.error !== undefined && <Fault error={models.error} onRetry={models.reload} />}
    </section>
  )
}

function Database() {
  const { data } = useQuery((signal) => call('GET /v1/database', { signal }), 'database', {
    everyMs,
  })
  const isUp = data?.state === 'available'
  return (
    <Item
      label={text(data?.kind === 'pglite' ? 'start.database_embedded' : 'start.database')}
      level={data === undefined ? '' : isUp ? 'good' : 'bad'}
      value={
        data === undefined
          ? null
          : isUp
            ? text('start.database_up', { ms: format.ms(data.ping_ms ?? 0) })
            : text('start.database_down')
      }
    />
  )
}

function Engines() {
  const { data } = useQuery((signal) => call('GET /v1/engines', { signal }), 'engines', {
    everyMs,
  })
  const engines = data?.data.filter(({ kind }) => kind !== 'demo') ?? []
  const failing = engines.filter(({ state }) => state === 'failing')
  const busy = engines.filter(({ state }) => state === 'busy').length
  const all = engines.length
  const bad = failing.length
  return (
    <Item
      label={text('start.engines')}
      level={all === 0 ? '' : bad === all ? 'bad' : bad + busy > 0 ? 'warn' : 'good'}
      value={
        data === undefined
          ? null
          : all === 0
            ? text('start.engines_none')
            : bad > 0
              ? text('start.engines_bad', { names: failing.map(({ name }) => name).join(', ') })
              : busy > 0
                ? text('start.engines_busy', { busy, all })
                : text('start.upstream_good', { all })
      }
    />
  )
}

function Upstreams() {
  const { data } = useQuery((signal) => call('GET /v1/upstreams', { signal }), 'upstreams', {
    everyMs,
  })
  const all = data?.data.length ?? 0
  const bad =
    data?.data.filter(({ state }) => state === 'ejected' || state === 'draining').length ?? 0
  return (
    <Item
      label={text('start.upstreams')}
      level={data === undefined ? '' : bad === 0 ? 'good' : bad === all ? 'bad' : 'warn'}
      value={
        data === undefined
          ? null
          : bad === 0
            ? text('start.upstream_good', { all })
            : text('start.upstream_bad', { bad, all })
      }
    />
  )
}

function Item({ label, level, value }: { label: string; level: Level; value: string | null }) {
  return (
    <div class="health-item">
      <span class="muted small">{label}</span>
      {value === null ? <div class="skeleton" /> : <span class={`status ${level}`}>{value}</span>}
    </div>
  )
}
