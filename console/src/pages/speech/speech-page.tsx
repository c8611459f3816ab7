import { useEffect } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { text } from '../../texts/texts.ts'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { LatencyCard, LedgerCard } from './figures.tsx'
import { FileCard } from './file-card.tsx'
import { Recorder } from './recorder.tsx'
import { leaveRecording } from './recording.ts'
import { TranscriptCard } from './transcript-card.tsx'

/** Names that select an engine by the language. */
const anyEngine = 'stt'

export function SpeechPage() {
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const names = (models.data?.data ?? [])
    .filter(({ mode }) => mode === 'transcribe')
    .map(({ id }) => id)
  useEffect(() => leaveRecording, [])
  return (
    <Page title={text('speech.title')} about={text('speech.about')}>
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
    </Page>
  )
}

/** The other names, which OpenAI's clients use, mean any engine. */
function isEngine(name: string): boolean {
  return name !== anyEngine && !/^(whisper-1|gpt-4o(-mini)?-transcribe)$/.test(name)
}
