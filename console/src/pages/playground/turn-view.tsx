import { useState } from 'preact/hooks'
import { ApiError } from '../../api/errors.ts'
import { SpeakButton } from '../../speaking/speak-button.tsx'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/code.tsx'
import { AreaField } from '../../ui/field.tsx'
import { wordsOf } from '../../ui/markdown.ts'
import { Fault, Notice } from '../../ui/notice.tsx'
import { type Answer, type Failure, isRunning, type Part } from './answer.ts'
import { PartView } from './part-view.tsx'
import type { Question, Turn } from './request.ts'

type Results = Question['results']

type TurnProps = {
  isLast: boolean
  onInspect: () => void
  onResults: (results: Results) => void
  onRetry: () => void
}

export function TurnView({ turn, ...rest }: TurnProps & { turn: Turn }) {
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
      <AnswerView id={turn.id} answer={turn.answer} {...rest} />
    </li>
  )
}

function AnswerView({
  id,
  answer,
  isLast,
  onInspect,
  onResults,
  onRetry,
}: TurnProps & { id: string; answer: Answer }) {
  // The answer is changed in place: its parts are rendered again because their version is another.
  const version = answer.version.value
  const running = isRunning(answer)
  const calls = answer.parts.filter((part) => part.kind === 'call')
  return (
    <article class="answer" aria-busy={running}>
      {/* Those of its text are below. */}
      <h2 class="visually-hidden">{text('playground.answer')}</h2>
      {answer.isResumed && <span class="tag">{text('playground.resumed')}</span>}
      {answer.parts.map((part) => (
        <PartView key={part.key} part={part} version={version} isRunning={running} />
      ))}
      {answer.status === 'waiting' && (
        <span class="status live muted">{text('playground.waiting')}</span>
      )}
      {answer.error !== null && (
        <Fault error={asApiError(answer.error)} onRetry={isLast ? onRetry : undefined} />
      )}
      {answer.status === 'interrupted' && (
        <Notice kind="warn">{text('playground.interrupted')}</Notice>
      )}
      {isLast && !running && calls.length > 0 && <ToolResults calls={calls} onSubmit={onResults} />}
      <Facts answer={answer} version={version} />
      <div class="row answer-actions">
        {!running && <AnswerText id={id} answer={answer} />}
        <Button kind="quiet" size="small" icon="code" onClick={onInspect}>
          {text('playground.inspect')}
        </Button>
        {isLast && !running && answer.error === null && (
          <Button kind="quiet" size="small" icon="refresh" onClick={onRetry}>
            {text('playground.again')}
          </Button>
        )}
      </div>
    </article>
  )
}

/** What can be done with the words of an answer. */
function AnswerText({ id, answer }: { id: string; answer: Answer }) {
  const texts = answer.parts.filter((part) => part.kind === 'text').map((part) => part.text)
  if (texts.every((one) => one.trim() === '')) return null
  return (
    <>
      <SpeakButton id={id} texts={() => texts.flatMap(wordsOf)} />
      <CopyButton quiet value={texts.join('\n\n')} />
    </>
  )
}

/** The status of a failure in a stream, which has none of its own, by its code. */
const streamStatus: readonly (readonly [RegExp, number])[] = [
  [/^stream_cut$/, 0],
  [/^upstream_/, 502],
  [/^rate_limit/, 429],
]

function asApiError({ message, code, status, requestId = null }: Failure): ApiError {
  const known = status ?? streamStatus.find(([pattern]) => pattern.test(code))?.[1] ?? 400
  return new ApiError(message, { code, status: known, requestId })
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

function Facts({ answer }: { answer: Answer; version: number }) {
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
    </footer>
  )
}
