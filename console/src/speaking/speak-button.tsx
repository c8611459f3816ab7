import { text } from '../texts/texts.ts'
import { Button } from '../ui/button.tsx'
import { announceFault } from '../ui/toasts.tsx'
import { speak, spoken, stopSpeaking } from './speaking.ts'
import { chosenVoice } from './voices.ts'

/** Speaks texts with the chosen voice, or stops them. Nothing where no model speaks. */
export function SpeakButton({ id, texts }: { id: string; texts: () => readonly string[] }) {
  const voice = chosenVoice.value
  if (voice === null) return null
  const own = spoken.value?.id === id ? spoken.value : null
  const isSpeaking = own !== null && own.state !== 'ended'
  return (
    <Button
      kind="quiet"
      size="small"
      icon={isSpeaking ? 'stop' : 'voice'}
      aria-busy={own?.state === 'waiting'}
      onClick={() => {
        if (isSpeaking) stopSpeaking()
        else speak(id, texts(), voice).catch(announceFault)
      }}
    >
      {text(isSpeaking ? 'voice.stop' : 'voice.speak')}
    </Button>
  )
}
