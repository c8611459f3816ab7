import { useEffect } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { place, setQuery } from '../../shell/router.ts'
import { stopSpeaking } from '../../speaking/speaking.ts'
import { chooseVoice, speakers } from '../../speaking/voices.ts'
import { text } from '../../texts/texts.ts'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Tabs } from '../../ui/tabs.tsx'
import { LatencyCard, LedgerCard } from './figures.tsx'
import { FileCard } from './file-card.tsx'
import { Recorder } from './recorder.tsx'
import { leaveRecording } from './recording.ts'
import { TranscriptCard } from './transcript-card.tsx'
import { Voices } from './voices.tsx'

const tabs = ['listen', 'speak'] as const

/** Names that select an engine by the language. */
const anyEngine = 'stt'

export function SpeechPage() {
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const { query } = place.value
  const tab = query.get('tab') === 'speak' ? 'speak' : 'listen'
  const model = query.get('model')
  useEffect(() => {
    speakers.value = (models.data?.data ?? []).filter(({ mode }) => mode === 'speak')
  }, [models.data])
  useEffect(() => {
    if (model !== null) chooseVoice({ model })
  }, [model])
  useEffect(() => leaveRecording, [])
  useEffect(() => stopSpeaking, [])
  const names = (models.data?.data ?? [])
    .filter(({ mode }) => mode === 'transcribe')
    .map(({ id }) => id)
  return (
    <Page title={text('speech.title')} about={text(`speech.about.${tab}`)}>
      <Tabs
        label={text('speech.title')}
        tabs={tabs.map((name) => ({ name, label: text(`speech.tab.${name}`) }))}
        selected={tab}
        onSelect={(name) => setQuery('tab', name === 'listen' ? null : name)}
      >
        {tab === 'speak' ? (
          <Voices models={models} />
        ) : (
          <div class="speech">
            <div class="stack">
              <Recorder models={models} engines={names.filter(isEngine)} />
              <TranscriptCard />
            </div>
            <div class="stack">
              <LatencyCard />
              <LedgerCard />
              <FileCard
                anyEngine={names.includes(anyEngine) ? anyEngine : (names[0] ?? anyEngine)}
                engines={names.filter(isEngine)}
              />
            </div>
          </div>
        )}
      </Tabs>
    </Page>
  )
}

/** The other names, which OpenAI's clients use, mean any engine. */
function isEngine(name: string): boolean {
  return name !== anyEngine && !/^(whisper-1|gpt-4o(-mini)?-transcribe)$/.test(name)
}
