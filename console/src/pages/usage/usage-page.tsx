import { useMemo, useState } from 'preact/hooks'
import { call, send } from '../../api/call.ts'
import type { UsageSums } from '../../api/generated/types.ts'
import { may } from '../../session/session.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { saveFile } from '../../ui/download.ts'
import { Fault } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Segments } from '../../ui/tabs.tsx'
import { announceFault } from '../../ui/toasts.tsx'
import { Breakdown } from './breakdown.tsx'
import { Chart } from './chart.tsx'
import { barsOf, type Measure, measured, periodOf, type Span, spans } from './period.ts'

type Owner = 'me' | 'all'

export function UsagePage() {
  const seesAll = may('can_manage_groups')
  const [span, setSpan] = useState<Span>('30d')
  const [owner, setOwner] = useState<Owner>(seesAll ? 'all' : 'me')
  const [measure, setMeasure] = useState<Measure>('tokens')
  const period = useMemo(() => periodOf(span, Date.now()), [span])
  const filter = {
    from: period.from,
    to: period.to,
    ...(owner === 'me' ? { user: 'me' } : {}),
  }
  const key = `${span} ${owner}`
  const series = useQuery(
    (signal) =>
      call('GET /v1/usage', {
        query: { ...filter, group_by: [period.unit], limit: period.starts.length },
        signal,
      }),
    key,
  )
  const saveCsv = async () => {
    try {
      const query = { ...filter, group_by: [period.unit, 'model', 'user', 'key'], format: 'csv' }
      const response = await send('GET /v1/usage', { query })
      saveFile(await response.blob(), `usage-${period.from.slice(0, 10)}.csv`)
    } catch (error) {
      announceFault(error)
    }
  }
  const totals = series.data?.totals
  const measures: readonly Measure[] = ['requests', 'tokens', 'audio', 'cost']
  const shownMeasures = measures.filter((one) => one !== 'cost' || totals?.cost != null)
  const render = (value: number) => format.compact(value)
  return (
    <Page
      title={text('usage.title')}
      about={text(owner === 'me' ? 'usage.about_me' : 'usage.about')}
      actions={
        <>
          {seesAll && (
            <Segments
              label={text('usage.owner')}
              choices={[
                { name: 'all' as Owner, label: text('usage.everyone') },
                { name: 'me' as Owner, label: text('usage.me') },
              ]}
              selected={owner}
              onSelect={setOwner}
            />
          )}
          <Segments
            label={text('usage.span')}
            choices={spans.map((name) => ({ name, label: text(`usage.span.${name}`) }))}
            selected={span}
            onSelect={setSpan}
          />
          <Button icon="download" onClick={() => void saveCsv()}>
            CSV
          </Button>
        </>
      }
    >
      {series.error !== undefined && <Fault error={series.error} onRetry={series.reload} />}
      <Totals totals={totals} />
      <section class="card" aria-label={text('usage.over_time')}>
        <header class="card-head">
          <h2>{text('usage.over_time')}</h2>
          <Segments
            label={text('usage.measure')}
            choices={shownMeasures.map((name) => ({ name, label: text(`usage.measure.${name}`) }))}
            selected={measure}
            onSelect={setMeasure}
          />
        </header>
        <div class="card-body">
          {series.data === undefined ? (
            <div class="chart skeleton" />
          ) : (
            <Chart
              bars={barsOf(period, series.data.data, measure)}
              unit={period.unit}
              render={render}
              label={text('usage.chart', {
                measure: text(`usage.measure.${measure}`),
                total: render(measured(series.data.totals, measure)),
              })}
            />
          )}
        </div>
      </section>
      <Breakdown filter={filter} filterKey={key} measure={measure} canSeeUsers={owner === 'all'} />
    </Page>
  )
}

function Totals({ totals }: { totals: UsageSums | undefined }) {
  const items: readonly [string, string | undefined][] = [
    [text('usage.measure.requests'), totals && format.number(totals.requests)],
    [text('usage.input'), totals && format.compact(totals.input_tokens)],
    [text('usage.output'), totals && format.compact(totals.output_tokens)],
    [text('usage.measure.audio'), totals && format.compact(totals.audio_seconds / 60)],
    [
      text('usage.measure.cost'),
      totals &&
        (totals.cost === null
          ? text('usage.no_prices')
          : format.number(totals.cost, { maximumFractionDigits: 2 })),
    ],
  ]
  return (
    <section class="health" aria-label={text('usage.totals')}>
      {items.map(([label, value]) => (
        <div key={label} class="health-item">
          <span class="muted small">{label}</span>
          {value === undefined ? <div class="skeleton" /> : <strong class="figure">{value}</strong>}
        </div>
      ))}
    </section>
  )
}
