import { format, text } from '../../texts/texts.ts'
import { Card } from '../../ui/page.tsx'
import { latency, ledger, measurements } from './recording.ts'
import { clockOf } from './transcript.ts'

export function LatencyCard() {
  // Read so that new measurements are shown.
  const isMeasured = measurements.value > 0
  return (
    <Card title={text('speech.latency')}>
      <div class="stack tight">
        <table class="figures">
          <caption class="visually-hidden">{text('speech.latency')}</caption>
          <thead>
            <tr>
              <td />
              <th scope="col">{text('speech.latest')}</th>
              <th scope="col">{text('speech.median')}</th>
              <th scope="col">p95</th>
            </tr>
          </thead>
          <tbody>
            {(['partial', 'final'] as const).map((kind) => {
              const summary = isMeasured ? latency.summary(kind) : null
              return (
                <tr key={kind}>
                  <th scope="row">{text(`speech.latency.${kind}`)}</th>
                  {(['latest', 'median', 'p95'] as const).map((name) => (
                    <td key={name}>{summary === null ? '–' : format.ms(summary[name])}</td>
                  ))}
                </tr>
              )
            })}
          </tbody>
        </table>
        <p class="small muted">{text('speech.latency_hint')}</p>
      </div>
    </Card>
  )
}

/** What became of every second of audio. */
export function LedgerCard() {
  const facts = ledger.value
  const { capturedMs, receivedMs, processedMs, finalMs, silenceMs, untranscribedMs, lostMs } = facts
  const isComplete = facts.sessions > 0
  const omittedMs = untranscribedMs + lostMs
  const textMs = Math.max(0, finalMs - silenceMs - untranscribedMs)
  const seconds = (ms: number) => `${format.number(ms / 1000, { maximumFractionDigits: 1 })} s`
  return (
    <Card title={text('speech.ledger')}>
      <div class="stack tight">
        {isComplete && (
          <div class="ledger" aria-hidden="true">
            <div class="text" style={{ flexGrow: textMs }} />
            <div class="silence" style={{ flexGrow: silenceMs }} />
            <div class="omitted" style={{ flexGrow: omittedMs }} />
          </div>
        )}
        <dl class="facts">
          <dt>{text('speech.ledger.captured')}</dt>
          <dd>{seconds(capturedMs)}</dd>
          <dt>{text('speech.ledger.received')}</dt>
          <dd>{seconds(receivedMs)}</dd>
          <dt>{text('speech.ledger.processed')}</dt>
          <dd>{seconds(processedMs)}</dd>
          {isComplete && (
            <>
              <dt>{text('speech.ledger.text')}</dt>
              <dd>{seconds(textMs)}</dd>
              <dt>{text('speech.ledger.silence')}</dt>
              <dd>{seconds(silenceMs)}</dd>
            </>
          )}
          <dt>{text('speech.ledger.omitted')}</dt>
          <dd>
            {omittedMs === 0 ? seconds(0) : <strong class="fault">{seconds(omittedMs)}</strong>}
            {facts.gaps.length > 0 && (
              <div class="small muted">
                {facts.gaps.map(({ start, end }) => `${clockOf(start)}–${clockOf(end)}`).join(', ')}
              </div>
            )}
          </dd>
        </dl>
        <p class="small muted">{text('speech.ledger_hint')}</p>
      </div>
    </Card>
  )
}
