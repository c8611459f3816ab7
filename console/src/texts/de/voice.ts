export const voice = {
  'voice.arrived': 'Alles angekommen',
  'voice.blocked':
    'Der Browser gibt keinen Ton aus. Klicken Sie in die Seite oder prüfen Sie die Toneinstellungen, dann noch einmal versuchen.',
  'voice.code': 'Als Code',
  'voice.example':
    'Guten Morgen. Die Schleuse öffnet um sechs, und die ersten Boote fahren um halb sieben hindurch.',
  'voice.first': 'Erster Ton',
  'voice.length': 'Länge',
  'voice.model': 'Sprechendes Modell',
  'voice.none': 'Noch kein Modell spricht',
  'voice.none_hint':
    'Installieren Sie die lokale Stimme (Englisch) unter „Lokale Modelle“, oder nehmen Sie einen Upstream mit einem Modell der Art „speak“ in die Konfiguration auf: siehe docs/speech.md.',
  'voice.none_install': 'Lokale Modelle öffnen',
  'voice.save': 'Als MP3 speichern',
  'voice.speak': 'Vorlesen',
  'voice.speed': 'Tempo',
  'voice.state.ended': 'Beendet',
  'voice.state.playing': 'Spricht',
  'voice.state.waiting': 'Wartet auf den ersten Ton',
  'voice.stop': 'Nicht mehr vorlesen',
  'voice.text': 'Text',
  'voice.title': 'Stimme',
  'voice.too_large': 'Die Audiodaten sind zu groß, um sie am Stück zu decodieren.',
  'voice.voice': 'Name der Stimme',
}
