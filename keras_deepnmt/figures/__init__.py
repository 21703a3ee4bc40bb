"""Figures of trained runs: values first, drawings with matplotlib second."""

from keras_deepnmt.figures.analyses import ANALYSES as ANALYSES
from keras_deepnmt.figures.analyses import Analysis as Analysis
from keras_deepnmt.figures.analyses import analyze as analyze
from keras_deepnmt.figures.analyzed_run import AnalyzedRun as AnalyzedRun
from keras_deepnmt.figures.comparisons import score_figures as score_figures
from keras_deepnmt.figures.comparisons import (
    training_figures as training_figures,
)
from keras_deepnmt.figures.drawing import draw as draw
from keras_deepnmt.figures.drawing import save_figures as save_figures
from keras_deepnmt.figures.figure import Bars as Bars
from keras_deepnmt.figures.figure import Figure as Figure
from keras_deepnmt.figures.figure import HeatMap as HeatMap
from keras_deepnmt.figures.figure import Lines as Lines
from keras_deepnmt.figures.figure import Points as Points
from keras_deepnmt.figures.figure import Table as Table
from keras_deepnmt.figures.run_report import report as report
