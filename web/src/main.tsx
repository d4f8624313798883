import { render } from "preact";
import { App } from "./app";
import { begin } from "./session";
import { currentLanguage, setLanguage } from "./words";
import "./style.css";

setLanguage(currentLanguage());
void begin().then((refusal) => render(<App first={refusal} />, document.getElementById("app")!));
