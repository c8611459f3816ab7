import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../api/call.ts'
import { may } from '../../session/session.ts'
import { href } from '../../shell/router.ts'
import { requestSpeech, speak, spoken, stopSpeaking } from '../../speaking/speaking.ts'
import { VoiceFields } from '../../speaking/voice-fields.tsx'
import { chosenVoice, type Voice } from '../../speaking/voices.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code.tsx'
import { saveFile } from '../../ui/download.ts'
import { AreaField } from '../../ui/field.tsx'
import { Empty, Fault } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { type Query, useAction } from '../../ui/query.ts'

const ownId = 'voices'

/** Says a text with any voice of the gateway. */
export function Voices({ models }: { models: Query<ResponseOf<'GET /v1/models'>> }) {
  const voice = chosenVoice.value
  if (models.error !== undefined) return <Fault error={models.error} onRetry={models.reload} />
  if (models.data === undefined) return <div class="skeleton" />
  if (voice === null) return <NoVoice />
  return <Speaking voice={voice} />
}

function NoVoice() {
  return (
    <div class="card">
      <Empty
        icon="voice"
        title={text('voice.none')}
        action={
          may('can_manage_models') && (
            <a class="button" href={href('/installer')}>
              {text('voice.none_install')}
            </a>
          )
        }
      >
        {text('voice.none_hint')}
      </Empty>
    </div>
  )
}

function Speaking({ voice }: { voice: Voice }) {
  const [input, setInput] = useState(text('voice.example'))
  const [fault, setFault] = useState<unknown>()
  const [isSaving, run] = useAction()
  const own = spoken.value?.id === ownId ? spoken.value : null
  const isSpeaking = own !== null && own.state !== 'ended'
  const isBlank = input.trim() === ''
  const start = () => {
    setFault(undefined)
    speak(ownId, [input], voice).catch(setFault)
  }
  const save = () =>
    run(async () => {
      try {
        setFault(undefined)
        const response = await requestSpeech(input, voice, 'mp3')
        saveFile(await response.blob(), `${voice.voice}.mp3`)
      } catch (error) {
        setFault(error)
      }
    })
  return (
    <div class="speech">
      <div class="stack">
        <section class="card card-body stack" aria-label={text('speech.tab.speak')}>
          <AreaField label={text('voice.text')} rows={6} value={input} onValue={setInput} />
          <div class="row">
            {isSpeaking ? (
              <Button kind="primary" icon="stop" onClick={stopSpeaking}>
                {text('voice.stop')}
              </Button>
            ) : (
              <Button kind="primary" icon="voice" disabled={isBlank} onClick={start}>
                {text('voice.speak')}
              </Button>
            )}
            <Button icon="download" disabled={isBlank || isSaving} onClick={() => void save()}>
              {text('voice.save')}
            </Button>
            <span class={isSpeaking ? 'status live muted' : 'muted'} role="status">
              {own !== null && text(`voice.state.${own.state}`)}
            </span>
          </div>
          {fault !== undefined && <Fault error={fault} />}
        </section>
        <Card title={text('voice.code')}>
          <CodeBlock label="curl" code={renderCurl(input, voice)} />
        </Card>
      </div>
      <div class="stack">
        <Card title={text('voice.title')}>
          <div class="stack">
            <VoiceFields />
          </div>
        </Card>
        <Card title={text('speech.latency')}>
          <dl class="facts">
            <dt>{text('voice.first')}</dt>
            <dd>{shown(own?.firstMs, format.ms)}</dd>
            <dt>{text('voice.length')}</dt>
            <dd>{shown(own?.audioS || null, (seconds) => format.ms(seconds * 1000))}</dd>
            <dt>{text('voice.arrived')}</dt>
            <dd>{shown(own?.arrivedMs, format.ms)}</dd>
          </dl>
        </Card>
      </div>
    </div>
  )
}

function shown(value: number | null | undefined, render: (value: number) => string): string {
  return value === null || value === undefined ? '–' : render(value)
}

function renderCurl(input: string, { model, voice, speed }: Voice): string {
  const body = { model, voice, input, ...(speed === 1 ? {} : { speed }) }
  return `curl ${location.origin}/v1/audio/speech \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}' \\
  --output speech.mp3`
}
