import { text } from '../../texts/texts.ts'
import { RichText } from '../../ui/rich-text.tsx'
import type { Part, Source } from './answer.ts'

export function PartView({
  part,
  isRunning,
}: {
  part: Part
  /** Another number for every change of the part. */
  version: number
  isRunning: boolean
}) {
  switch (part.kind) {
    case 'reasoning':
      return part.text === '' ? null : (
        <details class="reasoning" open={isRunning}>
          <summary>{text('playground.reasoning')}</summary>
          <RichText text={part.text} />
        </details>
      )
    case 'text':
      return (
        <>
          <RichText text={asCode(part.text)} />
          {part.sources.length > 0 && <Sources sources={part.sources} />}
        </>
      )
    case 'refusal':
      return (
        <div class="notice warn">
          <div>
            <strong>{text('playground.refusal')}</strong> {part.text}
          </div>
        </div>
      )
    case 'call':
      return (
        <div class="call">
          <span class="small muted">{text('playground.calls')}</span>
          <strong class="mono">{part.name}</strong>
          <pre>{prettyJson(part.args)}</pre>
        </div>
      )
    case 'step':
      return (
        <details class="call">
          <summary>
            <span class={`status ${stepLevel(part.state)}`}>{part.name}</span>{' '}
            <span class="small muted">{part.state.replaceAll('_', ' ')}</span>
          </summary>
          {part.detail !== '' && <pre>{part.detail}</pre>}
        </details>
      )
    case 'image':
      return part.base64 === '' ? null : (
        <img
          class="generated"
          src={`data:image/png;base64,${part.base64}`}
          alt={text('playground.image')}
        />
      )
  }
}

function stepLevel(state: string): string {
  if (state === 'completed') return 'good'
  return state === 'failed' || state === 'incomplete' ? 'bad' : 'live'
}

function Sources({ sources }: { sources: readonly Source[] }) {
  const unique = [
    ...new Map(sources.map((source) => [source.url ?? source.title, source])).values(),
  ]
  return (
    <div class="row sources">
      <span class="small muted">{text('playground.sources')}</span>
      <ul class="row" aria-label={text('playground.sources')}>
        {unique.map(({ title, url, quote }) => (
          <li key={url ?? title} class="tag" title={quote}>
            {url === undefined ? (
              title
            ) : (
              <a href={url} target="_blank" rel="noreferrer">
                {title}
              </a>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Structured output is one JSON value: shown as code. */
function asCode(shown: string): string {
  if (!/^\s*[{[]/.test(shown)) return shown
  const pretty = prettyJson(shown)
  return pretty === shown ? shown : `\`\`\`json\n${pretty}\n\`\`\``
}

/** Indented; what is not JSON (yet) stays as it is. */
export function prettyJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}
