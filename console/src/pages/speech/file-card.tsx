import { useRef, useState } from 'preact/hooks'
import { isAborted } from '../../api/call.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Fault } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { Progress } from '../../ui/progress.tsx'
import { announce } from '../../ui/toasts.tsx'
import { transcribeFile } from './file-transcription.ts'
import { languages } from './recorder.tsx'
import { clearTranscript, ledger, segments, state, warnings } from './recording.ts'
import { withSegment } from './transcript.ts'

type Running = {
  readonly name: string
  readonly phase: 'uploading' | 'transcribing'
  readonly share: number | null
}

/** Transcribes a file into the same transcript. */
export function FileCard({
  anyEngine,
  engines,
}: {
  /** The model that means any engine of the language. */
  anyEngine: string
  engines: readonly string[]
}) {
  const [language, setLanguage] = useState<string>('en')
  const [model, setModel] = useState('')
  const [running, setRunning] = useState<Running | null>(null)
  const [fault, setFault] = useState<unknown>()
  const controller = useRef<AbortController | null>(null)
  const picker = useRef<HTMLInputElement>(null)
  const transcribe = async (file: File) => {
    const cancel = new AbortController()
    controller.current = cancel
    clearTranscript()
    setFault(undefined)
    setRunning({ name: file.name, phase: 'uploading', share: 0 })
    try {
      const result = await transcribeFile({
        ...{ file, model: model || anyEngine, language, signal: cancel.signal },
        onProgress: (progress) => setRunning({ name: file.name, ...progress }),
        onSegment: (segment) => {
          segments.value = withSegment(segments.value, segment)
        },
      })
      const { audioMs, untranscribedMs, gaps } = result
      const heard = { capturedMs: audioMs, receivedMs: audioMs, processedMs: audioMs }
      const spokenMs = segments.value.reduce((sum, { start, end }) => sum + (end - start) * 1000, 0)
      const silenceMs = Math.max(0, audioMs - spokenMs - untranscribedMs)
      ledger.value = {
        ...heard,
        ...{ finalMs: audioMs, lostMs: 0, silenceMs, untranscribedMs, gaps, sessions: 1 },
      }
      warnings.value = result.warnings
      announce(text('speech.file_done', { name: file.name }))
    } catch (error) {
      if (!isAborted(error)) setFault(error)
    }
    setRunning(null)
  }
  const pick = (files: FileList | null) => {
    const file = files?.[0]
    if (file !== undefined && state.value === 'idle') void transcribe(file)
  }
  return (
    <Card title={text('speech.file')}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button does the same */}
      <div
        class="stack"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          pick(event.dataTransfer?.files ?? null)
        }}
      >
        <p class="small muted">{text('speech.file_hint')}</p>
        <SelectField
          label={text('speech.file_language')}
          value={language}
          onValue={setLanguage}
          disabled={running !== null}
          options={languages.map((value) => ({ value, label: text(`speech.language.${value}`) }))}
        />
        <SelectField
          label={text('speech.file_engine')}
          value={model}
          onValue={setModel}
          disabled={running !== null}
          options={[
            { value: '', label: text('speech.engine_any') },
            ...engines.map((value) => ({ value, label: value })),
          ]}
        />
        <input
          ref={picker}
          type="file"
          class="visually-hidden"
          tabIndex={-1}
          aria-label={text('speech.file_choose')}
          accept="audio/*,video/webm,.wav,.mp3,.ogg,.opus,.webm"
          onChange={(event) => {
            pick(event.currentTarget.files)
            event.currentTarget.value = ''
          }}
        />
        {running === null ? (
          <div>
            <Button
              icon="attach"
              disabled={state.value !== 'idle'}
              onClick={() => picker.current?.click()}
            >
              {text('speech.file_choose')}
            </Button>
          </div>
        ) : (
          <div class="stack tight">
            <div class="row between">
              <span class="grow truncate">{running.name}</span>
              <Button
                size="small"
                kind="quiet"
                icon="cross"
                onClick={() => controller.current?.abort()}
              >
                {text('action.cancel')}
              </Button>
            </div>
            <Progress
              label={text(`speech.file.${running.phase}`)}
              value={running.share ?? 0}
              max={running.share === null ? null : 1}
            />
            <span class="small muted" role="status">
              {text(`speech.file.${running.phase}`)}
            </span>
          </div>
        )}
        {fault !== undefined && <Fault error={fault} />}
      </div>
    </Card>
  )
}
