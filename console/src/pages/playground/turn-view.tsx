import { useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { AreaField } from '../../ui/field.tsx'
import { Notice } from '../../ui/notice.tsx'
import { type Answer, isRunning, type Part } from './answer.ts'
import { PartView } from './part-view.tsx'
import type { Question, Turn } from './request.ts'

type Results = Question['results']

export function TurnView({
  turn,
  isLast,
  onInspect,
  onResults,
}: {
  turn: Turn
  isLast: boolean
  onInspect: () => void
  onResults: (results: Results) => void
}) {
  const { question } = turn
  return (
    <li class="turn">
      {(question.text !== '' || question.attachments.length > 0) && (
        <div class="question">
          {question.text}
          {question.attachments.map(({ name, type, dataUrl }) =>
            type.startsWith('image/') ? (
              <img key={name} src={dataUrl} alt={name} />
            ) : (
              <span key={name} class="tag">
                {name}
              </span>
            ),
          )}
        </div>
      )}
      {question.results.map(({ callId, output }) => (
        <div key={callId} class="question">
          <span class="small muted">{text('playground.tool_result')}</span>
          <code>{output}</code>
        </div>
      ))}
      <AnswerView
        answer={turn.answer}
        isLast={isLast}
        onInspect={onInspect}
        onResults={onResults}
      />
    </li>
  )
}

function AnswerView({
  answer,
  isLast,
  onInspect,
  onResults,
}: {
  answer: Answer
  isLast: boolean
  onInspect: () => void
  onResults: (results: Results) => void
}) {
  // The answer is changed in place: its parts are rendered again because their version is another.
  const version = answer.version.value
  const running = isRunning(answer)
  const calls = answer.parts.filter((part) => part.kind === 'call')
  return (
    <article class="answer" aria-busy={running} aria-label={text('playground.answer')}>
      {answer.isResumed && <span class="tag">{text('playground.resumed')}</span>}
      {answer.parts.map((part) => (
        <PartView key={part.key} part={part} version={version} isRunning={running} />
      ))}
      {answer.status === 'waiting' && (
        <span class="status live muted">{text('playground.waiting')}</span>
      )}
      {answer.error !== null && (
        <Notice kind="bad">
          <strong>{answer.error.message}</strong>
          <span class="small muted">
            <code>{answer.error.code}</code>
          </span>
        </Notice>
      )}
      {answer.status === 'interrupted' && (
        <Notice kind="warn">{text('playground.interrupted')}</Notice>
      )}
      {isLast && !running && calls.length > 0 && <ToolResults calls={calls} onSubmit={onResults} />}
      <Facts answer={answer} version={version} onInspect={onInspect} />
    </article>
  )
}

/** Asks the user to play the client's tools. */
function ToolResults({
  calls,
  onSubmit,
}: {
  calls: readonly Extract<Part, { kind: 'call' }>[]
  onSubmit: (results: Results) => void
}) {
  const [outputs, setOutputs] = useState<Readonly<Record<string, string>>>({})
  return (
    <form
      class="card card-body stack tight"
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit(calls.map(({ callId }) => ({ callId, output: outputs[callId] ?? '' })))
      }}
    >
      {calls.map(({ callId, name }) => (
        <AreaField
          key={callId}
          mono
          rows={2}
          label={text('playground.result_of', { name })}
          placeholder='{"temperature_c": 21}'
          value={outputs[callId] ?? ''}
          onValue={(value) => setOutputs({ ...outputs, [callId]: value })}
        />
      ))}
      <div class="row">
        <Button type="submit" kind="primary" size="small">
          {text('playground.send_result')}
        </Button>
      </div>
    </form>
  )
}

function Facts({ answer, onInspect }: { answer: Answer; version: number; onInspect: () => void }) {
  const { usage, firstAt, sentAt, endedAt } = answer
  const facts: string[] = []
  if (answer.status === 'stopped') facts.push(text('playground.stopped'))
  if (answer.status === 'incomplete') {
    facts.push(text('playground.incomplete', { reason: answer.why ?? '' }))
  }
  if (firstAt !== null) facts.push(text('playground.first', { time: format.ms(firstAt - sentAt) }))
  if (endedAt !== null) facts.push(text('playground.total', { time: format.ms(endedAt - sentAt) }))
  if (usage !== null && endedAt !== null) {
    facts.push(
      text('playground.tokens', {
        input: format.number(usage.input),
        output: format.number(usage.output),
      }),
    )
    if (usage.reasoning > 0) {
      facts.push(text('playground.reasoning_tokens', { count: format.number(usage.reasoning) }))
    }
    if (usage.cached > 0) {
      facts.push(text('playground.cached_tokens', { count: format.number(usage.cached) }))
    }
    const seconds = firstAt === null ? 0 : (endedAt - firstAt) / 1000
    if (seconds > 0.05 && usage.output > 1) {
      const rate = format.number(usage.output / seconds, { maximumFractionDigits: 1 })
      facts.push(text('playground.rate', { rate }))
    }
  }
  return (
    <footer class="facts-line">
      <span class="tag">{answer.model}</span>
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      <Button kind="quiet" size="small" onClick={onInspect}>
        {text('playground.inspect')}
      </Button>
    </footer>
  )
}
