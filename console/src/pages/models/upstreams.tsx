import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Upstream } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { confirm } from '../../ui/confirm.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty } from '../../ui/notice.tsx'
import { type Query, useQuery } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { perform } from '../../ui/toasts.tsx'

const everyMs = 2_000

const levels: Readonly<Record<Upstream['state'], string>> = {
  available: 'good',
  recovering: 'live',
  suspect: 'warn',
  half_open: 'warn',
  ejected: 'bad',
  draining: 'warn',
}

function State({ state }: { state: Upstream['state'] }) {
  return (
    <span class={`status ${levels[state]}`} title={text(`upstreams.state_hint.${state}`)}>
      {text(`upstreams.state.${state}`)}
    </span>
  )
}

/** The inference endpoints behind the gateway, as the worker that responds knows them. */
export function Upstreams() {
  const query = useQuery((signal) => call('GET /v1/upstreams', { signal }), 'upstreams', {
    everyMs,
  })
  return (
    <section class="stack tight">
      <h2>{text('upstreams.title')}</h2>
      <UpstreamTable query={query} rows={query.data?.data} onChange={query.reload} />
    </section>
  )
}

/** Upstreams, with taking them out of service. */
export function UpstreamTable({
  query,
  rows,
  onChange,
}: {
  query: Query<unknown>
  rows: readonly Upstream[] | undefined
  onChange: () => void
}) {
  const [shown, setShown] = useState<string | null>(null)
  const detail = rows?.find(({ name }) => name === shown)

  const drain = async (name: string) => {
    const isSure = await confirm({
      title: text('upstreams.drain_title', { name }),
      consequence: text('upstreams.drain_consequence', { name }),
      action: text('upstreams.drain'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () => call('POST /v1/upstreams/{name}/drain', { path: { name } }),
      text('upstreams.drained', { name }),
    )
    onChange()
  }
  const undrain = async (name: string) => {
    await perform(
      () => call('DELETE /v1/upstreams/{name}/drain', { path: { name } }),
      text('upstreams.undrained', { name }),
    )
    onChange()
  }
  const columns: readonly Column<Upstream>[] = [
    {
      name: 'name',
      label: text('upstreams.name'),
      cell: ({ name, api }) => (
        <div>
          <strong>{name}</strong>
          <div class="small muted">{api}</div>
        </div>
      ),
    },
    { name: 'state', label: text('upstreams.state'), cell: ({ state }) => <State state={state} /> },
    {
      name: 'in_flight',
      label: text('upstreams.in_flight'),
      align: 'right',
      cell: ({ in_flight: now, max_in_flight: max }) => (max === null ? now : `${now} / ${max}`),
    },
    {
      name: 'queued',
      label: text('upstreams.queued'),
      align: 'right',
      cell: ({ queued }) => queued,
    },
    {
      name: 'requests',
      label: text('upstreams.requests'),
      align: 'right',
      cell: ({ requests }) => format.number(requests),
    },
    {
      name: 'failures',
      label: text('upstreams.failures'),
      align: 'right',
      cell: ({ failures, last_failure: last }) => (
        <span title={last === null ? undefined : `${last.kind}, ${format.time(last.at)}`}>
          {format.number(failures)}
        </span>
      ),
    },
    {
      name: 'ejections',
      label: text('upstreams.ejections'),
      align: 'right',
      cell: ({ ejections }) => format.number(ejections),
    },
    {
      name: 'first',
      label: text('upstreams.first'),
      align: 'right',
      cell: ({ models }) => <span class="nowrap">{slowest(models)}</span>,
    },
    actionsColumn(({ name, state }) => [
      {
        label: text('upstreams.details_of', { name }),
        word: text('upstreams.details'),
        onPress: () => setShown(name),
      },
      state === 'draining'
        ? {
            label: text('upstreams.undrain_name', { name }),
            word: text('upstreams.undrain'),
            onPress: () => undrain(name),
          }
        : {
            label: text('upstreams.drain_name', { name }),
            word: text('upstreams.drain'),
            onPress: () => drain(name),
          },
    ]),
  ]
  return (
    <>
      <Table
        label={text('upstreams.title')}
        columns={columns}
        query={query}
        rows={rows}
        keyOf={({ name }) => name}
        empty={
          <Empty icon="traffic" title={text('upstreams.none')}>
            {text('upstreams.none_hint')}
          </Empty>
        }
      />
      {detail !== undefined && <Details upstream={detail} onClose={() => setShown(null)} />}
    </>
  )
}

/** The usual time to the first output of the slowest model. */
function slowest(models: Upstream['models']): string {
  const times = models.flatMap(({ first_event_ms: ms }) => (ms === null ? [] : [ms]))
  return times.length === 0 ? '–' : format.ms(Math.max(...times))
}

function Details({ upstream, onClose }: { upstream: Upstream; onClose: () => void }) {
  const { name, api, last_failure: last, ejections, ejected_until: until } = upstream
  const drainedAt = upstream.drained_at
  return (
    <Dialog wide title={name} onClose={onClose}>
      <dl class="facts">
        <dt>{text('upstreams.api')}</dt>
        <dd>{api}</dd>
        <dt>{text('upstreams.state')}</dt>
        <dd>
          <State state={upstream.state} />
          <div class="small muted">{text(`upstreams.state_hint.${upstream.state}`)}</div>
        </dd>
        <dt>{text('upstreams.ejections')}</dt>
        <dd>
          {ejections}
          {until !== null && ` · ${text('upstreams.ejected_until', { time: format.time(until) })}`}
        </dd>
        <dt>{text('upstreams.last_failure')}</dt>
        <dd>
          {last === null ? (
            '–'
          ) : (
            <>
              <code>{last.kind}</code> · {format.time(last.at)}
            </>
          )}
        </dd>
        {drainedAt !== null && (
          <>
            <dt>{text('upstreams.drained_at')}</dt>
            <dd>{format.time(drainedAt)}</dd>
          </>
        )}
      </dl>
      <div class="table-box">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{text('upstreams.model')}</th>
              <th scope="col">{text('upstreams.state')}</th>
              <th scope="col" class="right">
                {text('upstreams.first')}
              </th>
              <th scope="col" class="right">
                {text('upstreams.whole')}
              </th>
            </tr>
          </thead>
          <tbody>
            {upstream.models.map((model) => (
              <tr key={model.model}>
                <td class="mono">{model.model}</td>
                <td>
                  <State state={model.state} />
                </td>
                <td class="right">
                  {model.first_event_ms === null ? '–' : format.ms(model.first_event_ms)}
                </td>
                <td class="right">
                  {model.response_ms === null ? '–' : format.ms(model.response_ms)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  )
}
