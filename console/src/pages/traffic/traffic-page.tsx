import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Traffic } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Empty, Fault, Notice } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { type Column, Table } from '../../ui/table.tsx'
import { UpstreamTable } from '../models/upstreams.tsx'

const everyMs = 2_000

type Call = Traffic['calls'][number]
type Queue = Traffic['queues'][number]

const levels: Readonly<Record<Call['phase'], string>> = {
  waiting: 'warn',
  started: 'live',
  streaming: 'good',
  whole: 'live',
}

/** What runs at this moment; polls while the tab is visible. */
export function TrafficPage() {
  const [isPaused, setPaused] = useState(false)
  const query = useQuery((signal) => call('GET /v1/traffic', { signal }), `traffic ${isPaused}`, {
    everyMs: () => (isPaused ? null : everyMs),
  })
  const traffic = query.data
  return (
    <Page
      title={text('traffic.title')}
      about={text('traffic.about')}
      actions={
        <Button icon={isPaused ? 'play' : 'pause'} onClick={() => setPaused(!isPaused)}>
          {text(isPaused ? 'traffic.resume' : 'traffic.pause')}
        </Button>
      }
    >
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {traffic !== undefined && (
        <>
          <Figures traffic={traffic} isPaused={isPaused} />
          {traffic.workers.missing > 0 && (
            <Notice kind="warn">
              {text('traffic.missing', { count: traffic.workers.missing })}
            </Notice>
          )}
        </>
      )}
      <section class="stack tight">
        <h2>{text('upstreams.title')}</h2>
        <UpstreamTable query={query} rows={traffic?.upstreams} onChange={query.reload} />
      </section>
      {traffic !== undefined && traffic.queues.length > 0 && (
        <section class="stack tight">
          <h2>{text('traffic.queues')}</h2>
          <Table
            label={text('traffic.queues')}
            columns={queueColumns()}
            query={query}
            rows={traffic.queues}
            keyOf={({ model, priority }) => `${model} ${priority}`}
            empty={null}
          />
        </section>
      )}
      <section class="stack tight">
        <h2>{text('traffic.calls')}</h2>
        <Table
          label={text('traffic.calls')}
          columns={callColumns()}
          query={query}
          rows={traffic?.calls}
          keyOf={({ request_id: id, worker, model }) => `${id} ${worker} ${model}`}
          empty={
            <Empty icon="traffic" title={text('traffic.none')}>
              {text('traffic.none_hint')}
            </Empty>
          }
        />
        {traffic !== undefined && traffic.running > traffic.calls.length && (
          <p class="small muted">
            {text('traffic.rest', { count: format.number(traffic.running - traffic.calls.length) })}
          </p>
        )}
      </section>
    </Page>
  )
}

function Figures({ traffic, isPaused }: { traffic: Traffic; isPaused: boolean }) {
  const { phases, workers } = traffic
  const figures = [
    { label: text('traffic.running'), value: traffic.running },
    { label: text('traffic.phase.streaming'), value: phases.streaming },
    { label: text('traffic.phase.started'), value: phases.started + phases.whole },
    { label: text('traffic.phase.waiting'), value: phases.waiting },
    { label: text('traffic.websockets'), value: traffic.websockets },
    { label: text('traffic.workers'), value: workers.reporting },
  ]
  return (
    <div class="stack tight">
      <dl class="health figures">
        {figures.map(({ label, value }) => (
          <div key={label} class="health-item">
            <dt class="small muted">{label}</dt>
            <dd class="figure">{format.number(value)}</dd>
          </div>
        ))}
      </dl>
      <p class="small muted">
        <span class={`status ${isPaused ? 'warn' : 'live'}`}>
          {text(isPaused ? 'traffic.paused_at' : 'traffic.live_at', {
            time: new Date(traffic.at).toLocaleTimeString(),
          })}
        </span>
      </p>
    </div>
  )
}

const callColumns = (): readonly Column<Call>[] => [
  {
    name: 'model',
    label: text('start.model'),
    cell: ({ model, surface }) => (
      <div class="anywhere">
        <strong>{model}</strong>
        {surface !== null && <div class="small muted">{text(`traffic.surface.${surface}`)}</div>}
      </div>
    ),
  },
  {
    name: 'user',
    label: text('traffic.user'),
    cell: ({ user }) => user.name ?? <code class="small">{user.id}</code>,
  },
  {
    name: 'phase',
    label: text('upstreams.state'),
    cell: ({ phase, retries }) => (
      <div>
        <span class={`status ${levels[phase]}`}>{text(`traffic.phase.${phase}`)}</span>
        {retries > 0 && (
          <div class="small muted">{text('traffic.retries', { count: retries })}</div>
        )}
      </div>
    ),
  },
  { name: 'upstream', label: text('upstreams.name'), cell: ({ upstream }) => upstream ?? '–' },
  {
    name: 'elapsed',
    label: text('traffic.elapsed'),
    align: 'right',
    cell: ({ elapsed_ms: ms }) => <span class="nowrap">{format.ms(ms)}</span>,
  },
  {
    name: 'first',
    label: text('upstreams.first'),
    align: 'right',
    cell: ({ first_event_ms: ms }) => (
      <span class="nowrap">{ms === null ? '–' : format.ms(ms)}</span>
    ),
  },
  {
    name: 'chars',
    label: text('traffic.chars'),
    align: 'right',
    cell: ({ output_chars: count }) => format.number(count),
  },
  {
    name: 'request',
    label: text('traffic.request'),
    cell: ({ request_id: id, worker }) => (
      <span title={text('traffic.worker', { worker })}>
        <code class="small">{id}</code>
      </span>
    ),
  },
]

const queueColumns = (): readonly Column<Queue>[] => [
  { name: 'model', label: text('start.model'), cell: ({ model }) => <strong>{model}</strong> },
  {
    name: 'priority',
    label: text('traffic.priority'),
    cell: ({ priority }) => {
      const known = priorities.find((one) => one === priority)
      return known === undefined ? priority : text(`traffic.priority.${known}`)
    },
  },
  {
    name: 'waiting',
    label: text('upstreams.queued'),
    align: 'right',
    cell: ({ waiting }) => format.number(waiting),
  },
]

const priorities = ['interactive', 'background', 'batch'] as const
