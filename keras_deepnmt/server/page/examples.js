// Sentences to begin with, by the code of their language.
export const EXAMPLES = {
  de: [
    "Zwei Hunde spielen im Schnee.",
    "Ich habe gestern einen alten Freund getroffen.",
    "Wo ist der nächste Bahnhof?",
  ],
  en: [
    "Two dogs are playing in the snow.",
    "I met an old friend yesterday.",
    "Where is the nearest train station?",
  ],
  fr: [
    "Deux chiens jouent dans la neige.",
    "J'ai rencontré un vieil ami hier.",
    "Où est la gare la plus proche ?",
  ],
  es: [
    "Dos perros juegan en la nieve.",
    "Ayer encontré a un viejo amigo.",
    "¿Dónde está la estación más cercana?",
  ],
};
