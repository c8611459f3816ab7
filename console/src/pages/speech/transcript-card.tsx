import { useEffect, useRef } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/code.tsx'
import { saveFile } from '../../ui/download.ts'
import { Empty } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { clearTranscript, segments, state } from './recording.ts'
import {
  clockOf,
  type ExportFormat,
  exportTranscript,
  renderTranscript,
  type Segment,
  type Word,
} from './transcript.ts'

const formats: readonly ExportFormat[] = ['txt', 'srt', 'vtt']
/** A reader who scrolled up further than this reads on undisturbed. */
const followPx = 80
/** Words below it are marked. */
const confidenceMin = 0.5

export function TranscriptCard() {
  const list = segments.value
  const hasFinal = list.some(({ stableText }) => stableText === null)
  const save = (kind: ExportFormat) =>
    saveFile(exportTranscript(list, kind), `transcript-${dayAndTime()}.${kind}`)
  return (
    <Card
      title={text('speech.transcript')}
      actions={
        hasFinal && (
          <div class="row">
            <CopyButton value={renderTranscript(list, 'txt')} />
            {formats.map((kind) => (
              <Button
                key={kind}
                size="small"
                icon="download"
                aria-label={text('speech.export', { format: kind.toUpperCase() })}
                onClick={() => save(kind)}
              >
                {kind.toUpperCase()}
              </Button>
            ))}
            <Button
              size="small"
              kind="quiet"
              icon="trash"
              label={text('speech.clear')}
              disabled={state.value !== 'idle'}
              onClick={clearTranscript}
            />
          </div>
        )
      }
    >
      {list.length === 0 ? (
        <Empty icon="speech" title={text('speech.empty')}>
          {text('speech.empty_hint')}
        </Empty>
      ) : (
        <Lines list={list} />
      )}
    </Card>
  )
}

function Lines({ list }: { list: readonly Segment[] }) {
  const box = useRef<HTMLOListElement>(null)
  const isFollowing = useRef(true)
  useEffect(() => {
    if (isFollowing.current) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [list])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="transcript" aria-label={text('speech.transcript')} tabIndex={0}>
      <ol
        ref={box}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isFollowing.current = scrollHeight - scrollTop - clientHeight < followPx
        }}
      >
        {list.map((segment) => (
          <Line key={segment.id} segment={segment} />
        ))}
      </ol>
    </section>
  )
}

function Line({ segment }: { segment: Segment }) {
  const { start, text: whole, stableText, words } = segment
  return (
    <li>
      <span class="small muted mono">{clockOf(start)}</span>
      <p>
        {stableText === null ? (
          <FinalText whole={whole} words={words} />
        ) : (
          <>
            {stableText}
            <span class="muted">{whole.slice(stableText.length)}</span>
          </>
        )}
      </p>
    </li>
  )
}

/** The text as the engine wrote it, with its uncertain words marked. */
function FinalText({ whole, words }: { whole: string; words: readonly Word[] }) {
  const uncertain = words.filter(({ confidence }) => (confidence ?? 1) < confidenceMin)
  if (uncertain.length === 0) return <>{whole}</>
  let at = 0
  const parts = uncertain.flatMap(({ word, confidence, start }) => {
    const found = whole.indexOf(word, at)
    if (found === -1) return []
    const before = whole.slice(at, found)
    at = found + word.length
    const share = format.number(confidence ?? 0, { style: 'percent' })
    return [
      before,
      <span key={start} class="uncertain" title={text('speech.confidence', { share })}>
        {word}
      </span>,
    ]
  })
  return (
    <>
      {parts}
      {whole.slice(at)}
    </>
  )
}

function dayAndTime(): string {
  return new Date().toISOString().slice(0, 16).replace(/[:T]/g, '-')
}
