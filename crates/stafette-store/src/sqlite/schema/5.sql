-- People also shorten the name that they are shown, which is the last eight digits of the id.
CREATE INDEX runs_by_short ON runs (substr(run, 13), run);
